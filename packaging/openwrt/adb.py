"""Packages of apk-tools 3 (`.apk`, OpenWrt 25.12 and later): the tree of a package's fields, then the bytes of its files.

A file is `ADB.` and the schema's name, then blocks: a word whose two upper bits are the type and whose others are the length
with itself, the contents, zeros up to 8 bytes. The first block holds the tree: words whose upper four bits are a type and
whose others are the value, or where it stands. An object is the number of its words with this one, then a word for each
field, those at the end that are empty left out. What stands there already is not written again.

Source: apk-v3(5), and `apk mkpkg` of apk-tools 3.0.6, which writes the same byte for byte (`crates/cli/tests/openwrt.rs`).
Not signed: `apk add --allow-untrusted` takes it.
"""

import hashlib
import struct
import zlib

INT, INT_32, BLOB_8, BLOB_16, BLOB_32, OBJECT = 0x1, 0x2, 0x8, 0x9, 0xA, 0xE
TREE, DATA = 0, 2
# Fields by their places, as apk_adb.h numbers them.
INFO = (
    "name",
    "version",
    "hashes",
    "description",
    "arch",
    "license",
    "origin",
    "maintainer",
    "url",
    "repo-commit",
    "build-time",
    "installed-size",
    "file-size",
    "provider-priority",
    "depends",
)
SCRIPTS = (
    "trigger",
    "pre-install",
    "post-install",
    "pre-deinstall",
    "post-deinstall",
    "pre-upgrade",
    "post-upgrade",
)


class Tree:
    """The block of fields, written from its leaves to its root."""

    def __init__(self):
        self.bytes = bytearray(8)  # versions of the format, both 0, then the root
        self.written = {}

    def place(self, kind, contents, alignment, shared=True):
        """A word that points at `contents`, which are written where they do not stand yet."""
        at = self.written.get(contents) if shared else None
        if at is None or at % alignment:
            self.bytes += bytes(-len(self.bytes) % alignment)
            at = len(self.bytes)
            self.bytes += contents
            if shared:
                self.written[contents] = at
        return kind << 28 | at

    def blob(self, contents, shared=True):
        contents = contents.encode() if isinstance(contents, str) else contents
        for kind, form, most in ((BLOB_8, "<B", 0xFF), (BLOB_16, "<H", 0xFFFF), (BLOB_32, "<I", 0xFFFFFFFF)):
            if 0 < len(contents) <= most:
                length = struct.pack(form, len(contents))
                return self.place(kind, length + contents, len(length), shared)
        return 0

    def int(self, value):
        assert 0 <= value < 1 << 32
        return INT << 28 | value if value < 1 << 28 else self.place(INT_32, struct.pack("<I", value), 4)

    def object(self, words):
        """Of the values of fields 1 to n, 0 where there is none."""
        while words and not words[-1]:
            words = words[:-1]
        count = len(words) + 1
        return self.place(OBJECT, struct.pack(f"<{count}I", count, *words), 4) if words else 0

    def access(self, mode):
        return self.object([self.int(mode), self.blob("root"), self.blob("root")])


def block(kind, contents):
    return struct.pack("<I", kind << 30 | len(contents) + 4) + contents + bytes(-(len(contents) + 4) % 8)


def package(info, depends, scripts, files, time, compress=True):
    """The bytes of an `.apk`: `info` and `scripts` by their names above, `files` as {path: (mode, contents)}."""
    tree = Tree()
    fields = [tree.blob(info.get(name, "")) for name in INFO[:-1]]
    needed = {name: tree.object([tree.blob(name)]) for name in depends}
    fields.append(tree.object([needed[name] for name in sorted(needed)]))

    folders = {"": []}
    for path in sorted(files):
        parts = path.split("/")
        for n in range(1, len(parts)):
            folders.setdefault("/".join(parts[:n]), [])
        folders["/".join(parts[:-1])].append(parts[-1])
    paths, data = [], bytearray()
    for at, folder in enumerate(sorted(folders), 1):
        entries = []
        for number, name in enumerate(sorted(folders[folder]), 1):
            mode, contents = files[f"{folder}/{name}".lstrip("/")]
            entry = [tree.blob(name), 0, 0, 0, tree.blob(hashlib.sha256(contents).digest())]
            entry[3], entry[2], entry[1] = tree.int(time), tree.int(len(contents)), tree.access(mode)
            entries.append(tree.object(entry))
            if contents:
                data += block(DATA, struct.pack("<2I", at, number) + contents)
        paths.append(tree.object([tree.blob(folder), tree.access(0o755), tree.object(entries)]))

    fields[INFO.index("installed-size")] = tree.int(max(1, sum(len(contents) for _, contents in files.values())))
    # What tells this package from others of its name: a hash of the tree, taken while it is empty.
    identity = tree.blob(bytes(20), shared=False)
    fields[INFO.index("hashes")] = identity
    root = [tree.object(fields), tree.object(paths)]
    root.append(tree.object([tree.blob(scripts.get(name, "")) for name in SCRIPTS]))
    struct.pack_into("<I", tree.bytes, 4, tree.object(root))
    at = (identity & 0xFFFFFFF) + 1
    tree.bytes[at : at + 20] = hashlib.sha256(tree.bytes).digest()[:20]

    whole = b"ADB.pckg" + block(TREE, bytes(tree.bytes)) + data
    if not compress:
        return whole
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    return b"ADBd" + deflate.compress(whole) + deflate.flush()
