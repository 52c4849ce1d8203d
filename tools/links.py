"""Whether the links of the Markdown files lead somewhere: files of this repository, and headings in them. Addresses are not asked.

python3 -B tools/links.py         every Markdown file that git tracks; prints those that lead nowhere and ends with 1
"""

import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
ADDRESS = re.compile(r"[a-z]+:")


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
    """(link, why) of each link in `path` that leads nowhere."""
    for link in LINK.findall(prose(path.read_text())):
        if ADDRESS.match(link):
            continue
        name, _, heading = urllib.parse.unquote(link).partition("#")
        target = path.parent / name if name else path
        if not target.exists():
            yield link, "no such file"
        elif heading and target.suffix == ".md" and heading not in anchors(target):
            yield link, "no such heading"


def main():
    """Says what is broken."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    found = [f"{name}: {link}: {why}" for name in files for link, why in broken(ROOT / name)]
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
