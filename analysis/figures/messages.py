"""Messages for slow receivers (paper 003), what it measured: packets, windows, segments, and how long files take.

Everything is measured by `tools/study/messages.py`; here it stands beside the paper and beside plain arithmetic
(`messages_law`). Medians of five, and the spread as bars.
"""

from . import messages_law as law
from . import style
from .catalogue import Drawn, Figure
from .emulation import part
from .table import markdown

CHAPTER = "messages-paper.md"
STUDY = "messages"
# The device of scenarios/papers/messages.toml: bytes/s it writes, bytes/s it reads, what a call costs besides, s.
WRITE, READ, OPERATION = 420e3, 840e3, 1.25e-3
KB = 1024
# Table 2, packets of 4,096 B: receiving time / sending time.
PAPER_RATIO = {235: 1.53, 469: 1.63, 938: 1.66, 2344: 1.70, 4688: 1.70}
PAPER_RATIO_PC = {235: "1.0", 469: "1.0", 938: "1.0", 2344: "1.0", 4688: "0.99"}
# Table 3, least windows, bytes: of the PC and of the PDA, by the way the message goes.
PAPER_WINDOWS = {("PC", "send"): 17520, ("PC", "fetch"): 17453, ("PDA", "send"): 32581, ("PDA", "fetch"): 686}
NAMES = {"send": "sent by the device", "fetch": "received by the device"}
COLOURS = {"send": style.BLUE, "fetch": style.VERMILION}


def pick(rows, **keys):
    """The one row that has these values."""
    return next(row for row in rows if all(row[key] == value for key, value in keys.items()))


def curve(axes, rows, x, way, label, colour, scale=1.0):
    """Medians of one way over `x`, with the spread of the runs."""
    mine = sorted((row for row in rows if row["do"] == way), key=lambda row: row[x])
    middle = [scale * row["median"] for row in mine]
    spread = [
        [m - scale * row["min"] for m, row in zip(middle, mine)],
        [scale * row["max"] - m for m, row in zip(middle, mine)],
    ]
    xs = [row[x] for row in mine]
    axes.errorbar(
        xs, middle, yerr=spread, label=label, color=colour, capsize=2.5, elinewidth=0.8, marker="o", markersize=3.5
    )


def packets(simulator):
    """Figure 2."""
    gave = part(simulator, STUDY, "packets")
    made, axes = style.figure(f"{gave['kb']} KB in application packets of different sizes", "packet [B]", "time [s]")
    for way, rate in (("fetch", WRITE), ("send", READ)):
        curve(axes, gave["rows"], "tuning", way, NAMES[way], COLOURS[way])
        known = [(size, law.message(gave["kb"] * KB, size, rate, OPERATION)) for size in range(512, 7129, 8)]
        style.line(axes, known, color=COLOURS[way], linestyle="--", linewidth=0.8, label=f"{NAMES[way]}, by arithmetic")
    style.level(axes, gave["kb"] * KB / law.air(), "the air alone", color=style.GREY, linestyle=":")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right")
    rows = [["packet [B]", "sent [ms]", "by arithmetic", "received [ms]", "by arithmetic", "received / sent"]]
    for size in sorted({row["tuning"] for row in gave["rows"]}):
        cells, times = [f"{size:,}"], []
        for way, rate in (("send", READ), ("fetch", WRITE)):
            row = pick(gave["rows"], do=way, tuning=size)
            times.append(row["median"])
            cells += [spread_ms(row), f"{1e3 * law.message(gave['kb'] * KB, size, rate, OPERATION):.0f}"]
        rows.append([*cells, f"{times[1] / times[0]:.2f}"])
    return Drawn(made, markdown(rows) + "\n\n" + acks_table(part(simulator, STUDY, "acks")))


def acks_table(gave):
    """What of a download depends on the packet where storage takes no time."""
    cells = [[f"{gave['kb']} KB, storage unlimited: packet [B]", "received [ms]", "segments", "ACKs"]]
    for row in gave["rows"]:
        cells.append([f"{row['tuning']:,}", spread_ms(row), f"{row['segments']:.0f}", f"{row['acks']:.0f}"])
    return markdown(cells)


def ratios(simulator):
    """Table 2."""
    rows = part(simulator, STUDY, "ratio")["rows"]
    by_law = law.message(1, 4096, WRITE, OPERATION) / law.message(1, 4096, READ, OPERATION)
    head = ["file [KB]", "PDA: the paper", "by arithmetic", "ours, 4,096 B", "ours, 3,072 B", "PC: the paper", "ours"]
    cells = [head]
    for kb, paper in PAPER_RATIO.items():
        ours = [divided(rows, host, kb, size) for host, size in (("PDA", 4096), ("PDA", 3072), ("PC", 4096))]
        cells.append(
            [f"{kb:,}", f"{paper:.2f}", f"{by_law:.2f}", f"**{ours[0]}**", ours[1], PAPER_RATIO_PC[kb], ours[2]]
        )
    return Drawn(table=markdown(cells))


def divided(rows, host, kb, size):
    """Receiving time over sending time, or a dash where it was not measured."""
    mine = {row["do"]: row["median"] for row in rows if (row["host"], row["kb"], row["tuning"]) == (host, kb, size)}
    return f"{mine['fetch'] / mine['send']:.2f}" if mine else "-"


def segments(simulator):
    """Figure 3."""
    rows = [row for row in part(simulator, STUDY, "segments")["rows"] if row["tuning"] == "4096"]
    made, panels = style.plt.subplots(3, 2, figsize=(7.2, 6.4), sharey="row")
    for column, way in enumerate(("send", "fetch")):
        row = pick(rows, do=way)
        data, acks, windows = panels[:, column]
        data.set_title(f"{gave_name(way)}: each segment")
        data.plot(row["data_ms"], color=COLOURS[way], linewidth=0.7)
        acks.plot([t for t, _ in row["ack_ms"]], [ms for _, ms in row["ack_ms"]], color=COLOURS[way], linewidth=0.7)
        windows.plot(*zip(*row["window"]), color=COLOURS[way], linewidth=0.8, drawstyle="steps-post")
        windows.set_xlabel("time [s]")
    for axes, label in zip(panels[:, 0], ("data time [ms]", "ACK response time [ms]", "receiver's window [B]")):
        axes.set_ylabel(label)
    for axes in panels[0]:
        axes.set_xlabel("segment")
    for column in (0, 1):
        panels[1, column].sharex(panels[2, column])
    return Drawn(made, segments_table(rows))


def gave_name(way):
    return {"send": "Upload", "fetch": "Download"}[way]


def segments_table(rows):
    cells = [["", "upload: the paper", "ours", "download: the paper", "ours"]]
    send, fetch = (pick(rows, do=way) for way in ("send", "fetch"))

    def worst(row, field):
        values = [ms for _, ms in row[field]] if field == "ack_ms" else row[field]
        return f"{max(values):.0f}"

    cells.append(["data time, longest [ms]", "20", worst(send, "data_ms"), "115", worst(fetch, "data_ms")])
    cells.append(
        ["ACK response time, longest [ms]", "-", worst(send, "ack_ms"), "up to 115 (figure 3)", worst(fetch, "ack_ms")]
    )
    silence = [f"{row['longest_silence_ms']:.0f}" for row in (send, fetch)]
    cells.append(["longest time without an ACK [ms]", "-", silence[0], "115", silence[1]])
    first = [row["first_collapse_segment"] for row in (send, fetch)]
    cells.append(
        ["window too small for a segment, first after segment", "never", *map(shown, first[:1]), "38", shown(first[1])]
    )
    updates = [str(row["window_updates"]) for row in (send, fetch)]
    cells.append(["window updates", "-", updates[0], "often", updates[1]])
    cells.append(["ACKs / data segments", "-", *map(share, (send,)), "-", share(fetch)])
    return markdown(cells)


def shown(value):
    return "never" if value is None else f"{value:,}"


def share(row):
    return f"{row['acks']} / {row['segments']}"


def windows(simulator):
    """Table 3: the least that each end offered while a message of 938 KB went one way, and with which remedies."""
    rows = part(simulator, STUDY, "segments")["rows"]
    cells = [["least window [B]", "the paper", "ours, 4,096 B", "ours, 3,072 B", "ours, 16 KiB, paced at 400 kB/s"]]
    for way in ("send", "fetch"):
        for host in ("PC", "PDA"):
            field = "window" if (host == "PC") == (way == "send") else "sender_window"
            ours = [
                f"{min(w for _, w in pick(rows, do=way, tuning=name)[field]):,}" for name in ("4096", "bound", "paced")
            ]
            cells.append([f"{host}, {gave_name(way).lower()}", f"{PAPER_WINDOWS[host, way]:,}", *ours])
    return Drawn(table=markdown(cells))


def access(simulator):
    """Figures 4 and 5."""
    rows = part(simulator, STUDY, "access")["rows"]
    made, panels = style.plt.subplots(1, 2, figsize=(7.2, 3.6), sharey=True)
    sizes = sorted({row["kb"] for row in rows})
    colours = (style.SKY, style.BLUE, style.GREEN, style.ORANGE, style.VERMILION)
    for axes, do, title in zip(panels, ("read", "write"), ("Reading (figure 4)", "Writing (figure 5)")):
        for kb, colour in zip(sizes, colours):
            mine = [row for row in rows if row["kb"] == kb]
            curve(axes, mine, "buffer", do, f"{kb:,} KB", colour)
        axes.set(title=title, xlabel="application buffer [B]")
    panels[0].set_ylim(0, 1.05 * max(row["max"] for row in rows))
    panels[0].set_ylabel("file access time [s]")
    panels[0].legend()
    return Drawn(made, access_table(rows, sizes))


def access_table(rows, sizes):
    cells = [["", "the paper", "by arithmetic", *(f"ours, {kb:,} KB" for kb in sizes)]]

    def time(do, kb, buffer):
        return pick(rows, do=do, kb=kb, buffer=buffer)["median"]

    def by_law(buffer, rate):
        return law.access(800 * KB, buffer, rate, OPERATION)

    def line(what, paper, known, of):
        cells.append([what, paper, known, *(of(kb) for kb in sizes)])

    twice = by_law(4096, WRITE) / by_law(4096, READ)
    line(
        "writing / reading, 4,096 B",
        "2",
        f"{twice:.2f}",
        lambda kb: f"{time('write', kb, 4096) / time('read', kb, 4096):.2f}",
    )
    for do, rate in (("read", READ), ("write", WRITE)):
        known = longer(by_law(3072, rate), by_law(8192, rate))
        line(
            f"{do}: 3,072 B takes longer than 8,192 B by",
            "10 %",
            known,
            lambda kb, do=do: longer(time(do, kb, 3072), time(do, kb, 8192)),
        )
        buffers = sorted({row["buffer"] for row in rows})
        best = min(buffers, key=lambda buffer: by_law(buffer, rate))
        line(
            f"{do}: best buffer [B]",
            "8,192",
            f"{best:,}",
            lambda kb, do=do: f"{min(buffers, key=lambda b: time(do, kb, b)):,}",
        )
    return markdown(cells)


def longer(time, than):
    return f"{100 * (time / than - 1):.0f} %"


def spread_ms(row):
    """`median (least to most)` in ms."""
    return f"{1e3 * row['median']:.0f} ({1e3 * row['min']:.0f} to {1e3 * row['max']:.0f})"


FIGURES = [
    Figure("messages-2", "application packets of 512 to 7,128 B (figure 2)", CHAPTER, packets),
    Figure("messages-ratio", "receiving time over sending time (table 2)", CHAPTER, ratios),
    Figure("messages-3", "data time, ACK response time and window (figure 3)", CHAPTER, segments),
    Figure("messages-windows", "least windows (table 3)", CHAPTER, windows),
    Figure("messages-4", "file access time by application buffer (figures 4 and 5)", CHAPTER, access),
]
