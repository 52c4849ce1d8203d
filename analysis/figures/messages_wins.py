"""Messages for slow receivers (paper 003), what can be won: table 4, each remedy for a slow storage, and today's path."""

from . import messages_law as law
from . import style
from .catalogue import Drawn, Figure
from .emulation import part
from .messages import CHAPTER, KB, STUDY, pick, spread_ms
from .table import markdown

# Table 4, ms.
PAPER = {("send", "before"): 2502, ("fetch", "before"): 11993, ("send", "after"): 2249, ("fetch", "after"): 4622}
# The device of scenarios/papers/messages-delays.toml: bytes/s it writes and reads, s a call.
WRITE, READ, OPERATION = 700e3, 1400e3, 0.74e-3
PACKET = 4096
DELAY = 10e-3


def delays(simulator):
    """Table 4, and what can be won over the storage's rate."""
    gave = part(simulator, STUDY, "delays")
    size = gave["kb"] * KB
    known = {
        # The receiver sleeps 10 ms and the device writes; upwards the server sleeps while the device reads and sends.
        ("fetch", "before"): law.message(size, PACKET, WRITE, OPERATION, DELAY),
        ("send", "before"): law.message(size, PACKET, None, 0.0, DELAY),
        ("fetch", "paper's after"): law.message(size, PACKET, WRITE, OPERATION),
        ("send", "paper's after"): law.message(size, PACKET, READ, OPERATION, DELAY),
        ("fetch", "tuned"): size / law.air(),
        ("send", "tuned"): size / law.air(),
    }
    names = {"before": "before", "paper's after": "with the paper's delays", "tuned": "after `tune`"}
    cells = [["", "the paper [ms]", "by arithmetic [ms]", "ours [ms]"]]
    for way, label in (("send", "upload"), ("fetch", "download")):
        for tuning, name in names.items():
            paper = PAPER.get((way, {"before": "before"}.get(tuning, "after")))
            ours = spread_ms(pick(gave["rows"], do=way, tuning=tuning))
            cells.append([f"{label}, {name}", f"{paper:,}", f"{1e3 * known[way, tuning]:,.0f}", ours])
    for tuning in ("paper's after", "tuned"):
        won = less(*(pick(gave["rows"], do="fetch", tuning=t)["median"] for t in ("before", tuning)))
        expected = less(known["fetch", "before"], known["fetch", tuning])
        cells.append([f"download, less by, {names[tuning]}", "61 %", f"{expected:.0f} %", f"**{won:.1f} %**"])
    return Drawn(rates_picture(gave["rates"], size), markdown(cells) + "\n\n" + rates_table(gave["rates"], size))


# The device that table 4's download after tuning tells of: 208 kB/s with its calls included, or 2.5 ms a call besides.
OWN_WRITE, OWN_OPERATIONS = 208e3, {"calls included": 0.0, "2.5 ms a call besides": 2.5e-3}
# Of each tuning: what is received at once, bytes, the sleep after it, s, and the paper's number.
RECEIVED = {
    "4096": (4096, DELAY, "before"),
    "1366": (1366, DELAY, "before"),
    "1366, no delays": (1366, 0.0, "after"),
}


def sleeps(simulator):
    """Table 4's download on the paper's own device: by how much of a packet it receives before it sleeps."""
    gave = part(simulator, STUDY, "sleeps")
    size = gave["kb"] * KB
    head = ["storage of 208 kB/s", "received at once", "sleep after it", "the paper [ms]", "by arithmetic [ms]"]
    cells = [[*head, "ours [ms]", "a packet of 4,096 B [ms]", "longest time without an ACK [ms]"]]
    for device, operation in OWN_OPERATIONS.items():
        for tuning, (at_once, delay, when) in RECEIVED.items():
            row = pick(gave["rows"], device=device, tuning=tuning)
            expected = 1e3 * law.message(size, at_once, OWN_WRITE, operation, delay)
            line = [device, f"{at_once:,} B", f"{1e3 * delay:.0f} ms", f"{PAPER['fetch', when]:,}", f"{expected:,.0f}"]
            packet = f"{1e3 * row['median'] * PACKET / size:.1f}"
            cells.append([*line, spread_ms(row), packet, f"{row['longest_silence_ms']:.0f}"])
    return Drawn(table=markdown(cells))


def less(before, after):
    """By how many percent `after` is less."""
    return 100 * (1 - after / before)


def won_by_law(rate, size):
    """What arithmetic lets be won with storage of `rate` bytes/s, percent."""
    operation = 520 / rate
    before = law.message(size, PACKET, rate, operation, DELAY)
    packet = min(max(law.best_packet(size, rate, operation), 512), 1 << 20)
    return less(before, law.message(size, packet, rate, operation))


def rates_picture(rates, size):
    made, axes = style.figure(
        "What table 4's before leaves to be won, by the device's storage",
        "storage, writing [kB/s]",
        "less download time [%]",
    )
    known = [(rate, won_by_law(1e3 * rate, size)) for rate in range(150, 1101, 5)]
    style.line(axes, known, color=style.GREY, linestyle="--", label="by arithmetic: no stall, only sleep, storage, air")
    measured = [(rate, less(*pair)) for rate, pair in pairs(rates)]
    axes.plot(*zip(*measured), "o-", color=style.VERMILION, markersize=4, label="measured: before, and after `tune`")
    style.level(axes, 61, "the paper: 61 %", color=style.BLUE)
    axes.set_ylim(0, 75)
    axes.legend(loc="lower right")
    return made


def pairs(rates):
    """[(rate in kB/s, (before, after))], s."""
    found = sorted({row["rate"] for row in rates})
    return [
        (rate, tuple(pick(rates, rate=rate, tuning=tuning)["median"] for tuning in ("before", "tuned")))
        for rate in found
    ]


def rates_table(rates, size):
    cells = [["storage, writing [kB/s]", "before [ms]", "after `tune` [ms]", "less by", "by arithmetic"]]
    for rate, (before, after) in pairs(rates):
        cells.append(
            [
                f"{rate:,}",
                f"{1e3 * before:,.0f}",
                f"{1e3 * after:,.0f}",
                f"{less(before, after):.1f} %",
                f"{won_by_law(1e3 * rate, size):.0f} %",
            ]
        )
    return markdown(cells)


def bound(simulator):
    """What each remedy does where storage is the limit, and the receiver's window before and with pacing."""
    gave = part(simulator, STUDY, "bound")
    traced = part(simulator, STUDY, "segments")["rows"]
    made, panels = style.plt.subplots(2, 1, figsize=(6.4, 4.6), sharex=True, sharey=True)
    shown = (("bound", "3,072 B, nothing tuned", style.VERMILION), ("paced", "16 KiB, paced at 400 kB/s", style.GREEN))
    for axes, (name, title, colour) in zip(panels, shown):
        row = pick(traced, do="fetch", tuning=name)
        axes.plot(
            [t for t, _ in row["window"]],
            [w / KB for _, w in row["window"]],
            color=colour,
            linewidth=0.8,
            drawstyle="steps-post",
        )
        axes.set(title=f"{title}: {row['seconds']:.2f} s", ylabel="window [KiB]")
    panels[-1].set_xlabel("time since the first segment [s]")
    cells = [
        ["download, 938 KB", "ms", "against as it is", "least window [B]", "longest time without an ACK [ms]", "ACKs"]
    ]
    base = pick(gave["rows"], do="fetch", tuning="as it is")["median"]
    for row in gave["rows"]:
        if row["do"] == "fetch":
            name = "after `tune`" if row["tuning"] == "tuned" else row["tuning"]
            change = f"{100 * (row['median'] / base - 1):+.1f} %" if row["median"] != base else ""
            cells.append(
                [
                    name,
                    spread_ms(row),
                    change,
                    f"{row['least_window']:,.0f}",
                    f"{row['longest_silence_ms']:.0f}",
                    f"{row['acks']:.0f}",
                ]
            )
    return Drawn(made, markdown(cells) + "\n\n" + ratio_table(gave))


def ratio_table(gave):
    """Receiving time over sending time before and after `tune`."""
    cells = [["938 KB", "sent [ms]", "received [ms]", "received / sent"]]
    for name, tuning in (("before", "as it is"), ("after `tune`", "tuned")):
        send, fetch = (pick(gave["rows"], do=way, tuning=tuning) for way in ("send", "fetch"))
        cells.append([name, spread_ms(send), spread_ms(fetch), f"{fetch['median'] / send['median']:.2f}"])
    return markdown(cells)


def path(simulator):
    """500 Mbit/s and 20 ms beside iperf3, and memory."""
    gave, memory = part(simulator, STUDY, "path"), part(simulator, STUDY, "memory")
    cells = [["", "iperf3 [Mbit/s]", "message, TLS [Mbit/s]", "share"]]
    for way, label in (("send", "upload"), ("fetch", "download")):
        plain, message = (pick(gave["rows"], way=way, **{"with": name}) for name in ("iperf3", "message"))
        shown = [
            f"{one['median'] / 1e6:.0f} ({one['min'] / 1e6:.0f} to {one['max'] / 1e6:.0f})" for one in (plain, message)
        ]
        cells.append([label, *shown, f"{100 * message['median'] / plain['median']:.1f} %"])
    used = [["4 GiB", "s", "client's memory [MiB]", "server's [MiB], both together"]]
    for row in memory["rows"]:
        name = "upload" if row["do"] == "send" else "download"
        used.append([name, f"{row['seconds']:.0f}", f"{row['client_kb'] / KB:.1f}", f"{memory['server_kb'] / KB:.1f}"])
    return Drawn(table=markdown(cells) + "\n\n" + markdown(used))


FIGURES = [
    Figure("messages-delays", "table 4 before and after, and over the storage's rate", CHAPTER, delays),
    Figure("messages-sleeps", "one sleep a packet, and three", CHAPTER, sleeps),
    Figure("messages-bound", "what each remedy does for a slow storage", CHAPTER, bound),
    Figure("messages-path", "500 Mbit/s and 20 ms beside iperf3", CHAPTER, path),
]
