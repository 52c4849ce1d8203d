"""Records a command in a terminal of 80 columns and draws what it leaves there as SVG: the recorded session of the README.

    python3 -B tools/study/terminal.py -o book/src/figures/demo-session.svg --typed 'make demo' -- target/release/lasthop demo

The command runs in a pseudo-terminal, so that it shows colours and progress as it does to a person. Known are carriage
return, erasing to the end of a line or of the screen, and the colours that the programs use; everything else of a terminal's
language is left out. `--stop-at WORDS` draws nothing from the line on that begins with them.
"""

import argparse
import fcntl
import html
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

COLUMNS = 80
TOKENS = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)|.", re.DOTALL)
# Background, text, and the colours of SGR codes: readable for who does not tell red from green, as the words say it, too.
BACKGROUND, INK = "#1b1f24", "#e6e6e6"
COLOURS = {"32": "#7ee0a3", "33": "#f0c674", "31": "#ff8f80"}
WIDE, HIGH = 7.8, 17.0


def record(command):
    """What `command` writes to a terminal, as bytes, and its exit code."""
    written = []

    def keep(descriptor):
        part = os.read(descriptor, 65536)
        written.append(part)
        return part

    pid, descriptor = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(command[0], command)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    try:
        while part := keep(descriptor):
            sys.stderr.write(part.decode("utf-8", "replace"))
    except OSError:  # how Linux says that the other side has gone
        pass
    _, status = os.waitpid(pid, 0)
    return b"".join(written), os.waitstatus_to_exitcode(status)


def screen(text):
    """Lines of cells, each a character and its look, after everything was written."""
    lines, row, column, look = [[]], 0, 0, ""
    for match in TOKENS.finditer(text):
        parameters, final, back, down, words = match.groups()
        if final == "m":
            look = "" if parameters in ("", "0") else parameters
        elif final == "K":
            del lines[row][column:]
        elif final == "J":
            del lines[row][column:], lines[row + 1 :]
        elif back:
            column = 0
        elif down:
            row, column = row + 1, 0
            if row == len(lines):
                lines.append([])
        elif words:
            for character in words:
                lines[row] += [(" ", "")] * (column + 1 - len(lines[row]))
                lines[row][column] = (character, look)
                column += 1
    return lines


def runs(line):
    """Stretches of one look."""
    start = 0
    for i in range(1, len(line) + 1):
        if i == len(line) or line[i][1] != line[start][1]:
            yield start, "".join(character for character, _ in line[start:i]), line[start][1]
            start = i


def draw(lines, title):
    width, height = COLUMNS * WIDE + 24, len(lines) * HIGH + 24
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="6" fill="{BACKGROUND}"/>',
        f'<g font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="13" fill="{INK}">',
    ]
    for i, line in enumerate(lines):
        y = 12 + HIGH * (i + 0.75)
        for start, words, look in runs(line):
            if not words.strip():
                continue
            colour = next((COLOURS[code] for code in look.split(";") if code in COLOURS), None)
            style = (f' fill="{colour}"' if colour else "") + (' font-weight="bold"' if "1" in look.split(";") else "")
            length = f' textLength="{len(words) * WIDE:.1f}" lengthAdjust="spacingAndGlyphs"'
            # Browsers make one of several ordinary spaces.
            shown = html.escape(words).replace(" ", "\N{NO-BREAK SPACE}")
            out.append(f'<text x="{12 + start * WIDE:.1f}" y="{y:.1f}"{length}{style}>{shown}</text>')
    return "\n".join([*out, "</g>", "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True, help="where the picture goes")
    parser.add_argument("--typed", help="what stands after the prompt, in place of the command")
    parser.add_argument("--stop-at", metavar="WORDS", help="draw nothing from the line on that begins with them")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    written, code = record(arguments.command)
    if code != 0:
        sys.exit(f"{' '.join(arguments.command)} ended with {code}; nothing is drawn")
    lines = screen(written.decode("utf-8", "replace"))
    plain = ["".join(character for character, _ in line).rstrip() for line in lines]
    if arguments.stop_at:
        last = next((i for i, words in enumerate(plain) if words.startswith(arguments.stop_at)), len(lines))
        lines, plain = lines[:last], plain[:last]
    while plain and not plain[-1]:
        lines.pop()
        plain.pop()
    typed = arguments.typed or " ".join(arguments.command)
    prompt = [(character, "1") for character in f"$ {typed}"]
    arguments.out.write_text(draw([prompt, *lines], f"A terminal: {typed}"), encoding="utf-8")
    print(f"{arguments.out}: {len(lines) + 1} lines", file=sys.stderr)


if __name__ == "__main__":
    main()
