"""A preprocessor of mdBook: links of the book's chapters to files of the repository that are no chapters lead to the repository.

LASTHOP_REPOSITORY says where its files can be read (https://FORGE/OWNER/NAME/blob/REVISION); without it, this checkout.
"""

import json
import os
import pathlib
import sys

from links import ADDRESS, LINK, ROOT

SOURCES = ROOT / "book" / "src"
REPOSITORY = os.environ.get("LASTHOP_REPOSITORY") or ROOT.as_uri()


def led(chapter, link):
    """Where a link of a chapter leads in the site."""
    if ADDRESS.match(link) or link.startswith("#"):
        return link
    name, mark, heading = link.partition("#")
    target = pathlib.Path(os.path.normpath(SOURCES / chapter["source_path"] / ".." / name))
    if not target.is_relative_to(SOURCES):
        return f"{REPOSITORY}/{target.relative_to(ROOT)}{mark}{heading}"
    # mdBook makes index.html of the first chapter.
    return link.replace("README.md", "index.md") if target == SOURCES / "README.md" else link


def walk(items):
    """Changes the links of every chapter, and of those below it."""
    for item in items:
        if chapter := isinstance(item, dict) and item.get("Chapter"):
            if chapter["source_path"]:
                chapter["content"] = LINK.sub(lambda found: f"]({led(chapter, found[1])})", chapter["content"])
            walk(chapter["sub_items"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0)
    _, book = json.load(sys.stdin)
    walk(book["sections"])
    json.dump(book, sys.stdout)
