"""Whether links lead somewhere: to files of this repository, and headings in them. Addresses elsewhere are not asked.

python3 -B tools/links.py                  every Markdown file that git tracks; prints those that lead nowhere and ends with 1
python3 -B tools/links.py [--whole] SITE   every page of the site that tools/book made; --whole: all pictures were drawn, too
python3 -B tools/links.py --pictures       names of the pictures that `make figures` can draw and that were not drawn here
"""

import html.parser
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / "book" / "src"
REPOSITORY = os.environ.get("LASTHOP_REPOSITORY") or ROOT.as_uri()
LINK = re.compile(r"\]\(([^)\s]+)\)")
ADDRESS = re.compile(r"[a-z]+:")
PICTURES = {".svg", ".png"}
# What is made for the site and not kept.
PUBLISHED = {SOURCES / line for line in (SOURCES / ".gitignore").read_text().split("\n") if line and line[0] != "#"}


def is_published(path):
    """Whether the site has it, though git does not."""
    return not PUBLISHED.isdisjoint((path, *path.parents))


def prose(text):
    """The text without what stands as code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE))


def anchors(path):
    """What can be linked to in a Markdown file, as mdbook and forges name headings."""
    text = re.sub(r"^ *```.*?^ *```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", h) for h in re.findall(r"^#+ +(.*)$", text, re.MULTILINE))
    made = {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def broken(path):
    """(link, why) of each link in the Markdown file `path` that leads nowhere."""
    for link in LINK.findall(prose(path.read_text())):
        if ADDRESS.match(link):
            continue
        name, _, heading = urllib.parse.unquote(link).partition("#")
        target = path.parent / name if name else path
        if not target.exists():
            if not is_published(pathlib.Path(os.path.normpath(target))):
                yield link, "no such file"
        elif heading and target.suffix == ".md" and heading not in anchors(target):
            yield link, "no such heading"


class Page(html.parser.HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, path):
        super().__init__()
        self.base, self.links, self.places = path.parent, [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.places |= {named[name] for name in ("id", "name") if named.get(name)}
        link = named.get("href") or named.get("src")
        if tag != "base" and link:
            self.links.append(link)


def broken_in_site(site):
    """(page, link, why) of each link of the book's pages that leads nowhere; what made the references has checked its own."""
    pages = {}

    def page(path):
        if path not in pages:
            pages[path] = Page(path)
        return pages[path]

    api = site / "api"
    # The page of an address that is none is shown below any address, so that its links count from the site's own.
    for path in sorted(p for p in site.rglob("*.html") if not p.is_relative_to(api) and p.name != "404.html"):
        for link in page(path).links:
            name, _, place = urllib.parse.unquote(link).partition("#")
            if name.startswith(REPOSITORY):
                if not (ROOT / name.removeprefix(REPOSITORY).lstrip("/")).exists():
                    yield path, link, "no such file in the repository"
                continue
            if ADDRESS.match(link):
                if not link.startswith(("https:", "http:")):
                    yield path, link, "no address of the web"
                continue
            target = pathlib.Path(os.path.normpath(path.parent / name)) if name else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield path, link, "no such file in the site"
            elif place and target.suffix == ".html" and place not in page(target).places:
                yield path, link, "no such place in that page"


def undrawn():
    """Names of pictures that are not here."""
    return sorted(path.stem for path in PUBLISHED if path.suffix in PICTURES and not path.exists())


def main():
    """Says what is broken."""
    arguments = sys.argv[1:]
    if arguments == ["--pictures"]:
        for name in undrawn():
            print(name)
        return 0
    if arguments:
        site = pathlib.Path(arguments[-1]).resolve()
        found = [f"{page.relative_to(site)}: {link}: {why}" for page, link, why in broken_in_site(site)]
        if arguments[0] == "--whole":
            found += [f"{name} was not drawn" for name in undrawn()]
    else:
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
        files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        found = [f"{name}: {link}: {why}" for name in files for link, why in broken(ROOT / name)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
