"""Pages with the composition of the CHAP paper's table 1, made here and the same every time.

A page of t text and n other objects and K KB is one HTML document, t - 1 style sheets and scripts by turns, and n PNG
images, K x 1024 bytes in all. The paper gives totals only; ours is how they are divided: text has 30 % of the bytes, the
document a third of that (all of it when it is alone), and sizes of the others are log-normal (sigma 1), as sizes of web
objects are, from 200 bytes upwards. Four images in five stand in the document, the fifth in a style sheet, so that a
browser finds it later. The same pages, object by object, are the simulator's (crates/home/src/traffic/page.rs).

The PNGs are not compressed, so that each has the size it should have, to the byte.
"""

import math
import struct
import zlib
from dataclasses import dataclass
from statistics import NormalDist

# name: text objects, others, KB; paper 002, table 1.
TABLE_1 = {
    "google-news": (2, 4, 155),
    "yahoo": (6, 42, 322),
    "wsj": (19, 132, 750),
    "cnn": (33, 103, 1142),
}
TITLES = {"google-news": "Google News", "yahoo": "Yahoo", "wsj": "Wall Street Journal", "cnn": "CNN"}

TEXT_SHARE = 0.3
DOCUMENT_SHARE = 1 / 3
SMALLEST = 200
SIGMA = 1.0


@dataclass(frozen=True)
class Page:
    """Its objects by path, the document first; content types follow from the endings."""

    name: str
    objects: dict

    @property
    def size(self):
        return sum(len(body) for body in self.objects.values())


def sizes(total, count):
    """`count` sizes of at least SMALLEST bytes that add up to `total`: the quantiles of a log-normal distribution, stirred."""
    if count == 0:
        return []
    stride = next(s for s in range(max(1, count * 5 // 8), 0, -1) if math.gcd(s, count) == 1)
    ranks = [i * stride % count for i in range(count)]
    weights = [math.exp(SIGMA * NormalDist().inv_cdf((rank + 0.5) / count)) for rank in ranks]
    spare = total - count * SMALLEST
    assert spare >= 0, "more objects than bytes"
    made = [SMALLEST + int(spare * weight / sum(weights)) for weight in weights]
    made[-1] += total - sum(made)
    return made


def page(name):
    """The page called `name`."""
    text, others, kilobytes = TABLE_1[name]
    total = kilobytes * 1024
    text_total = int(total * TEXT_SHARE)
    document = text_total if text == 1 else int(text_total * DOCUMENT_SHARE)
    text_sizes = sizes(text_total - document, text - 1)
    image_sizes = sizes(total - text_total, others)
    # A PNG has 67 bytes at least; every size above is far from that.
    images = {f"i{i}.png": png(size, i) for i, size in enumerate(image_sizes)}
    sheets = [f"t{i}.css" for i in range(0, text - 1, 2)]
    scripts = [f"t{i}.js" for i in range(1, text - 1, 2)]
    late = list(images)[4::5] if sheets else []
    texts = {}
    for i, size in enumerate(text_sizes):
        path = f"t{i}.css" if i % 2 == 0 else f"t{i}.js"
        mine = late[sheets.index(path) :: len(sheets)] if path in sheets else []
        body = "".join(f".b{image[1:-4]}{{background:url({image})}}\n" for image in mine)
        texts[path] = padded(body, "/*", "*/", size)
    html = document_of(name, sheets, scripts, images, late)
    objects = {"index.html": padded(html, "<!--", "-->", document), **texts, **images}
    made = Page(name, objects)
    assert made.size == total and len(objects) == text + others
    return made


def document_of(name, sheets, scripts, images, late):
    """The document: a heading and one tile per image."""
    head = "".join(f'<link rel=stylesheet href="{path}">' for path in sheets)
    tile = "width=64 height=48 style='margin:2px'"
    shown = "".join(f'<img src="{path}" {tile}>' for path in images if path not in late)
    behind = "".join(
        f"<span class=b{path[1:-4]} style='display:inline-block;width:64px;height:48px;margin:2px'></span>"
        for path in late
    )
    ran = "".join(f'<script src="{path}"></script>' for path in scripts)
    style = "body{font:16px sans-serif;margin:12px;background:#f4f1ea}"
    return (
        f"<!doctype html><meta charset=utf-8><title>{TITLES[name]}</title><style>{style}</style>{head}"
        f"<h1>{TITLES[name]}</h1><p>{shown}{behind}{ran}"
    )


def padded(body, start, end, size):
    """`body` and a comment that makes it `size` bytes."""
    spare = size - len(body) - len(start) - len(end)
    assert spare >= 0, f"{len(body)} bytes do not fit into {size}"
    return (body + start + ("lasthop " * (spare // 8 + 1))[:spare] + end).encode()


def png(size, number):
    """A grey gradient of 8 bits a pixel in `size` bytes, whatever is over in a comment."""
    signature = b"\x89PNG\r\n\x1a\n"
    width = 16
    # Signature, header, end, the frames of data and comment, zlib's header, checksum and block headers: 110 bytes or so.
    height = max(1, (size - 180 - size // 4000) // (width + 1))
    shade = 40 + 37 * number % 160
    rows = b"".join(
        bytes([0] + [(shade + 3 * x + 255 * y // (4 * height)) % 256 for x in range(width)]) for y in range(height)
    )
    data = (
        signature
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows, 0))
    )
    end = chunk(b"IEND", b"")
    spare = size - len(data) - len(end) - 12
    assert spare >= 8, f"an image of {size} bytes"
    return data + chunk(b"tEXt", b"Comment\x00" + b" " * (spare - 8)) + end


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def write_all(folder):
    """Every page below `folder`, one folder each."""
    for name in TABLE_1:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for path, body in page(name).objects.items():
            (folder / name / path).write_bytes(body)
