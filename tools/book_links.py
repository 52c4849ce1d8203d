"""A preprocessor of mdBook: links of the book's chapters to files of the repository that are no chapters lead to the repository.

LASTHOP_REPOSITORY says where its files can be read (https://FORGE/OWNER/NAME/blob/REVISION); without it, this checkout. In place of a
picture that was not drawn stands what it would show; links to references stay where LASTHOP_SITE_PARTS says that the site has them.
"""

import json
import os
import pathlib
import re
import sys

from links import ADDRESS, PICTURES, REPOSITORY, ROOT, SOURCES, is_published

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def led(chapter, found):
    """A link of a chapter as the site has it."""
    mark, text, link = found.groups()
    if ADDRESS.match(link) or link.startswith("#"):
        return found[0]
    name, hash_mark, heading = link.partition("#")
    target = pathlib.Path(os.path.normpath(SOURCES / chapter["source_path"] / ".." / name))
    if not target.is_relative_to(SOURCES):
        return f"{mark}[{text}]({REPOSITORY}/{target.relative_to(ROOT)}{hash_mark}{heading})"
    if is_published(target) and not target.exists():
        if target.suffix in PICTURES:
            return f"*{text}* (a picture that `make figures ARGS={target.stem}` draws)"
        if not os.environ.get("LASTHOP_SITE_PARTS"):
            return f"{text} (`make site` makes it)"
    # mdBook makes index.html of a README.md, and does not change links to it.
    return found[0].replace("README.md", "index.md") if target.name == "README.md" else found[0]


def walk(items):
    """Changes the links of every chapter, and of those below it."""
    for item in items:
        if chapter := isinstance(item, dict) and item.get("Chapter"):
            if chapter["source_path"]:
                chapter["content"] = LINK.sub(lambda found: led(chapter, found), chapter["content"])
            walk(chapter["sub_items"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0)
    _, book = json.load(sys.stdin)
    walk(book["items"])
    json.dump(book, sys.stdout)
