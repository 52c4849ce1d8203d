"""The pictures at the head of chapters that show how something works; nothing in them is measured."""

from . import style
from .catalogue import Drawn, Figure
from .topology import box, canvas, link

SHADE = {"facecolor": "#EAF2F8"}
GREYED = {"facecolor": "#EEEEEE"}
ARROW = {"arrow": "-|>"}
DASHED = {"arrow": "-|>", "linestyle": "--"}


def note(axes, x, y, text, **how):
    axes.text(x, y, text, **{"fontsize": 7, "ha": "center", "va": "center", **how})


def frame(axes, x, y, width, height, text, **how):
    """A rectangle from its lower left corner with a heading inside."""
    look = {"facecolor": "#F6F6F6", "edgecolor": style.INK, "linewidth": 0.8, **how}
    axes.add_patch(style.plt.Rectangle((x, y), width, height, zorder=0, **look))
    axes.text(x + 0.12, y + height - 0.12, text, fontsize=8, va="top")


def chain(axes, y, steps, left=0.0, right=10.0, height=0.9, share=0.72, **how):
    """Boxes in a row with arrows between them; a step is a text, or (text, look)."""
    pitch = (right - left) / len(steps)
    width = pitch * share
    xs = [left + pitch * (i + 0.5) for i in range(len(steps))]
    for x, step in zip(xs, steps):
        text, look = step if isinstance(step, tuple) else (step, {})
        box(axes, x, y, text, width, height, **look)
    for a, b in zip(xs, xs[1:]):
        link(axes, (a + width / 2, y), (b - width / 2, y), **{**ARROW, **how})
    return xs


def schematic(title, size=(6.4, 2.6), height=4.0):
    """Makes a figure's function of one that draws on empty axes, 10 wide and `height` high."""

    def wrap(draw):
        def make(_):
            made, axes = canvas(title, size, height=height)
            draw(axes)
            return Drawn(made)

        return make

    return wrap


@schematic("Words along one path", (7.0, 3.2), 5.0)
def glossary(axes):
    y = 3.0
    box(axes, 0.8, y, "server\n(sender)", 1.3, 0.9)
    box(axes, 3.1, y, "provider's\nqueue", 1.3, 0.9, **GREYED)
    box(axes, 5.7, y, "access point\nqueue", 1.5, 0.9, **SHADE)
    box(axes, 9.1, y, "station\n(receiver)", 1.4, 0.9)
    link(axes, (1.45, y), (2.45, y))
    link(axes, (3.75, y), (4.95, y), "WAN link")
    link(axes, (6.45, y), (8.4, y), "channel (802.11)", linestyle="--")
    span = {"arrow": "<|-|>", "color": style.GREY}
    link(axes, (0.8, 4.2), (5.7, 4.2), "remote RTT", lift=0.05, **span)
    link(axes, (5.7, 4.2), (9.1, 4.2), "local RTT", lift=0.05, **span)
    link(
        axes, (8.4, 1.9), (1.45, 1.9), "ACK with the advertised window", at=0.78, lift=0.05, color=style.GREEN, **ARROW
    )
    link(axes, (5.7, 2.55), (5.7, 1.95), color=style.GREEN, linestyle=":")
    note(axes, 5.7, 1.55, "lowered here, never raised")
    link(
        axes, (1.45, 0.9), (8.4, 0.9), "in flight: sent and not yet acknowledged", lift=0.05, color=style.BLUE, **ARROW
    )
    note(
        axes,
        5.0,
        0.3,
        "bottleneck: the queue in which packets wait, at the provider, in the access point, or below it in the radio",
    )


@schematic("Who runs where", (6.4, 2.4), 3.8)
def commands(axes):
    columns = (
        ("any machine, any user", "sim, sweep:\nhomes in virtual time", "message:\nsend, fetch, serve, tune"),
        ("this kernel, root", "demo:\none home, off and on", "emulate:\nany home, real programs"),
        ("a router, root", "run:\ncontrols its flows", "status, doctor:\nwhat and why"),
    )
    for i, (head, *each) in enumerate(columns):
        frame(axes, 0.1 + 3.3 * i, 0.2, 3.1, 3.4, head)
        for j, text in enumerate(each):
            box(axes, 1.65 + 3.3 * i, 2.35 - 1.3 * j, text, 2.6, 0.95, **(SHADE if i == 2 else {}))


@schematic("Two ways to Prometheus", (6.8, 2.6), 4.4)
def prometheus(axes):
    box(axes, 1.1, 2.2, "controller\n(status socket)", 1.9, 0.9, **SHADE)
    box(axes, 4.3, 3.3, "lasthop web\n/metrics", 2.2, 0.9)
    box(axes, 4.3, 1.1, "lasthop status\n--prometheus", 2.2, 0.9)
    box(axes, 6.9, 1.1, "a file, read by\nnode_exporter", 2.0, 0.9, **GREYED)
    box(axes, 8.8, 2.8, "Prometheus", 1.6, 0.8)
    link(axes, (2.05, 2.4), (3.2, 3.2), **ARROW)
    link(axes, (2.05, 2.0), (3.2, 1.2), **ARROW)
    link(axes, (5.4, 3.3), (8.0, 2.9), **ARROW)
    link(axes, (5.4, 1.1), (5.9, 1.1), **ARROW)
    link(axes, (7.9, 1.3), (8.6, 2.4), **ARROW)
    note(axes, 8.8, 3.7, "alert rules (contrib/prometheus)\ndashboard (contrib/grafana)")


@schematic("What is controlled, and how", (6.4, 2.7), 4.4)
def limits(axes):
    rows = (
        ("TCP", "its advertised window", style.GREEN),
        ("QUIC, bulk UDP", "marks or drops, about 1 s after it began", style.ORANGE),
        ("games, calls, live video", "measured and left alone", style.BLUE),
        ("hardware offload", "not seen; counted as bypassed", style.GREY),
    )
    for i, (what, how, colour) in enumerate(rows):
        y = 3.8 - 1.05 * i
        box(axes, 1.7, y, what, 2.9, 0.75)
        box(axes, 7.2, y, how, 4.6, 0.75, edgecolor=colour)
        link(axes, (3.15, y), (4.9, y), color=colour, **ARROW)


@schematic("The path of a change", (6.4, 2.0), 3.0)
def changes(axes):
    xs = chain(
        axes,
        2.0,
        [
            ("core, medium, tcp\ndecides, models", SHADE),
            "live, emu, sim\ncarry it out",
            "home, schema\nkeys and fields",
            "book\nwhat was validated",
        ],
        height=1.0,
        share=0.78,
    )
    box(axes, 5.0, 0.5, "tests and vectors: say what was forgotten", 8.6, 0.6, **GREYED)
    for x in xs:
        link(axes, (x, 0.8), (x, 1.5), color=style.GREY, **DASHED)


@schematic("Two halves and the records between them", (6.4, 3.0), 4.8)
def halves(axes):
    box(axes, 5.0, 0.9, "per packet: core::fastpath\n(BPF in the kernel)", 3.4, 0.95, **SHADE)
    box(axes, 5.0, 2.5, "records: per flow, per hop, heartbeat", 4.6, 0.6, **GREYED)
    box(axes, 5.0, 4.1, "per interval of 50 ms: core::ap\n(Rust)", 3.4, 0.95, **SHADE)
    link(axes, (0.4, 0.9), (3.3, 0.9), "packets", **ARROW)
    link(axes, (6.7, 0.9), (9.6, 0.9), "the same packets, some\nwith a smaller window", **ARROW)
    link(axes, (4.2, 1.4), (4.2, 2.2), **ARROW)
    link(axes, (4.2, 2.8), (4.2, 3.6), **ARROW)
    note(axes, 4.05, 1.8, "measured", ha="right")
    note(axes, 4.05, 3.2, "samples", ha="right")
    link(axes, (5.8, 3.6), (5.8, 2.8), **ARROW)
    link(axes, (5.8, 2.2), (5.8, 1.4), **ARROW)
    note(axes, 5.95, 3.2, "plans, heartbeat", ha="left")
    note(axes, 5.95, 1.8, "plan of this flow", ha="left")


@schematic("What a record holds", (6.4, 1.5), 2.0)
def decisions(axes):
    chain(
        axes,
        1.0,
        [
            "context:\nthe design, the question",
            ("decision:\nwhat is so here", SHADE),
            "consequences:\nwhat follows from it",
        ],
        height=0.9,
        share=0.8,
    )


@schematic("A download as its sender sees it: sequence numbers", (6.8, 2.6), 4.2)
def window_control(axes):
    y = 2.4
    marks = {"una": 1.0, "edge": 6.2, "offered": 9.0}
    axes.add_patch(style.plt.Rectangle((0.2, y), 9.6, 0.55, facecolor="white", edgecolor=style.INK, linewidth=0.8))
    for a, b, colour, text in (
        (0.2, marks["una"], "#DDDDDD", "acked"),
        (marks["una"], marks["edge"], "#BBDDEE", "in flight"),
        (marks["edge"], marks["offered"], "#F6E3C5", "offered, not yet advertised"),
    ):
        axes.add_patch(style.plt.Rectangle((a, y), b - a, 0.55, facecolor=colour, edgecolor=style.INK, linewidth=0.6))
        note(axes, (a + b) / 2, y + 0.27, text)
    for x, text in (
        (marks["una"], "ACK"),
        (marks["edge"], "advertised right edge:\nonly moves to the right,\nat the pace of the plan"),
        (marks["offered"], "receiver's own\nright edge"),
    ):
        link(axes, (x, 1.55), (x, y - 0.03), color=style.GREEN if x == marks["edge"] else style.INK, **ARROW)
        note(axes, x, 1.0, text)
    link(
        axes,
        (marks["una"], 3.5),
        (marks["edge"], 3.5),
        "window in force: share x round trip without queueing",
        arrow="<|-|>",
        lift=0.05,
    )


@schematic("A packet train, before and behind the bottleneck", (6.8, 2.6), 4.2)
def capacity(axes):
    look = {"facecolor": style.SKY, "edgecolor": style.INK, "linewidth": 0.6}
    for i in range(7):
        for x in (0.5 + 0.32 * i, 4.6 + 0.74 * i):
            axes.add_patch(style.plt.Rectangle((x, 2.9), 0.22, 0.6, **look))
    note(axes, 1.5, 3.8, "arrival: at the sender's pace", fontsize=8)
    note(axes, 7.0, 3.8, "delivery: at the pace of the bottleneck", fontsize=8)
    link(axes, (2.85, 3.2), (4.4, 3.2), "bottleneck", lift=0.1, **ARROW)
    link(axes, (4.6, 2.55), (9.05, 2.55), arrow="<|-|>")
    note(axes, 6.8, 2.25, "time of the train's delivery (dispersion)")
    box(
        axes,
        5.0,
        1.15,
        "capacity of the direction = bytes of the train behind its first packet / time of its delivery\n"
        "only while packets wait, so that the bottleneck and not the sender sets the pace",
        9.4,
        1.0,
        **SHADE,
    )


@schematic("What a UDP flow is", (6.6, 2.7), 4.2)
def elastic(axes):
    box(axes, 1.3, 2.2, "a UDP flow", 1.8, 0.8)
    box(axes, 4.6, 2.2, "does it send as fast as\nthe path carries?", 2.6, 1.0, **GREYED)
    box(axes, 8.4, 3.4, "real-time: game, call,\nlive video; left alone", 2.8, 0.9, edgecolor=style.BLUE)
    box(
        axes,
        8.4,
        1.0,
        "elastic: QUIC, bulk;\nheld to its share by\nmarks (ECN) or drops",
        2.8,
        1.15,
        edgecolor=style.ORANGE,
    )
    link(axes, (2.2, 2.2), (3.3, 2.2), **ARROW)
    link(axes, (5.9, 2.4), (7.0, 3.3), "no", lift=0.1, **ARROW)
    link(axes, (5.9, 2.0), (7.0, 1.1), "yes", lift=0.12, **ARROW)


@schematic("The namespaces of a cell", (7.0, 2.8), 4.6)
def outside(axes):
    y = 3.0
    for x, text, look in (
        (0.7, "srv\nservers", {}),
        (2.4, "isp\nprovider", GREYED),
        (4.5, "ap\nlasthop run", SHADE),
        (7.0, "air\nlast hop", GREYED),
        (9.2, "sta\nstations", {}),
    ):
        box(axes, x, y, text, 1.2, 0.9, **look)
    link(axes, (1.3, y), (1.8, y))
    link(axes, (3.0, y), (3.9, y), "WAN", lift=0.08)
    link(axes, (5.1, y), (6.4, y), "lan0", lift=0.08)
    link(axes, (7.6, y), (8.6, y))
    box(axes, 4.5, 1.2, "pc\n(lan1, a wire)", 1.6, 0.8)
    link(axes, (4.5, 2.55), (4.5, 1.6))
    note(axes, 1.55, 4.0, "delay")
    note(axes, 2.4, 2.2, "HTB + FIFO:\nthe WAN link's rate")
    note(axes, 7.0, 2.2, "HTB or TBF + FIFO:\na bottleneck it cannot see")
    note(axes, 8.0, 0.9, "programs of others: iperf3, irtt, nginx,\nab, curl, ssh, aioquic", fontsize=8)


@schematic("One exchange of a frame on the channel, two stations that want to send", (7.0, 2.9), 4.6)
def channel(axes):
    def bar(x, w, y, text, colour):
        axes.add_patch(style.plt.Rectangle((x, y), w, 0.6, facecolor=colour, edgecolor=style.INK, linewidth=0.7))
        note(axes, x + w / 2, y + 0.3, text)

    for y, who in ((3.2, "access point"), (2.1, "station A"), (1.0, "station B")):
        note(axes, 0.1, y + 0.3, who, ha="left", fontsize=8)
        axes.plot((1.7, 9.9), (y, y), color=style.GREY, linewidth=0.8)
    bar(1.8, 0.8, 3.2, "DIFS", "#EEEEEE")
    bar(2.6, 0.9, 3.2, "backoff", "#F6E3C5")
    bar(3.5, 2.5, 3.2, "data to A", style.SKY)
    bar(6.0, 0.4, 2.1, "SIFS", "#EEEEEE")
    bar(6.4, 0.8, 2.1, "ACK", "#BFE5D8")
    bar(7.2, 0.8, 1.0, "DIFS", "#EEEEEE")
    bar(8.0, 0.5, 1.0, "rest", "#F6E3C5")
    bar(8.5, 1.4, 1.0, "data", style.SKY)
    bar(1.8, 0.8, 1.0, "DIFS", "#EEEEEE")
    bar(2.6, 0.9, 1.0, "backoff", "#F6E3C5")
    note(axes, 5.3, 1.3, "the channel is busy: backoff stands still")
    link(axes, (1.8, 0.5), (7.2, 0.5), "air time of one exchange", lift=-0.42, arrow="<|-|>")


@schematic("The parts of a connection", (6.8, 2.6), 4.2)
def connection(axes):
    frame(axes, 0.1, 0.5, 3.7, 3.4, "sender")
    frame(axes, 6.2, 0.5, 3.7, 3.4, "receiver")
    box(axes, 1.95, 2.75, "congestion control (cc/)\ncwnd, ssthresh", 3.2, 0.85, **SHADE)
    box(axes, 1.95, 1.4, "scoreboard, RTO,\nfast retransmit", 3.2, 0.85)
    box(axes, 8.05, 2.75, "reassembly, SACK blocks", 3.2, 0.85)
    box(axes, 8.05, 1.4, "delayed ACK,\nadvertised window", 3.2, 0.85)
    link(axes, (3.8, 2.75), (6.2, 2.75), "segments", **ARROW)
    link(axes, (6.2, 1.4), (3.8, 1.4), "ACKs", **ARROW)


@schematic("Two kinds of losses", (6.6, 2.4), 3.8)
def discrimination(axes):
    box(axes, 1.3, 1.9, "a segment\nis missing", 1.9, 0.9)
    box(axes, 4.6, 1.9, "time between the segments\naround it: as long as the\nmissing ones take?", 2.9, 1.15, **GREYED)
    box(axes, 8.4, 3.0, "lost on the link:\nsent again, window kept", 2.8, 0.9, edgecolor=style.GREEN)
    box(axes, 8.4, 0.8, "lost in a queue:\nsent again, window cut", 2.8, 0.9, edgecolor=style.VERMILION)
    link(axes, (2.25, 1.9), (3.15, 1.9), **ARROW)
    link(axes, (6.05, 2.1), (7.0, 2.9), "yes", lift=0.1, **ARROW)
    link(axes, (6.05, 1.7), (7.0, 0.9), "no", lift=0.12, **ARROW)


@schematic("One connection becomes two", (6.6, 2.0), 3.0)
def split(axes):
    box(axes, 1.0, 1.6, "server", 1.5, 0.9)
    box(axes, 5.0, 1.6, "access point:\nreceiver | buffer | sender", 3.2, 1.0, **SHADE)
    box(axes, 9.0, 1.6, "station", 1.5, 0.9)
    link(axes, (1.75, 1.6), (3.4, 1.6), "connection 1", lift=0.1, arrow="<|-|>")
    link(axes, (6.6, 1.6), (8.25, 1.6), "connection 2", lift=0.1, arrow="<|-|>")
    note(axes, 2.6, 0.5, "never sees losses of the last hop")
    note(axes, 7.6, 0.5, "short round trip: repairs fast")


@schematic("How delay and jitter are measured", (6.8, 2.6), 4.2)
def metrics(axes):
    for y, who in ((3.2, "sent"), (1.2, "received")):
        axes.plot((1.2, 9.8), (y, y), color=style.GREY, linewidth=0.8)
        note(axes, 0.2, y, who, ha="left", fontsize=8)
    for i, (s, r) in enumerate(((1.6, 2.6), (3.6, 4.6), (5.6, 7.7))):
        link(axes, (s, 3.2), (r, 1.2), color=style.BLUE if i < 2 else style.VERMILION, **ARROW)
        note(axes, s, 3.45, f"S{i + 1}")
        note(axes, r, 0.9, f"R{i + 1}")
    axes.plot((5.6, 6.6), (3.2, 1.2), color=style.GREY, linewidth=0.8, linestyle=":")
    link(axes, (6.6, 1.35), (7.7, 1.35), arrow="<|-|>")
    note(axes, 8.35, 1.75, "added delay: R3 - S3\nless the least delay", ha="left")
    note(axes, 5.0, 0.3, "jitter of packet 3: |(R3 - R2) - (S3 - S2)|", fontsize=8)


@schematic("Real hosts, modelled links", (7.0, 2.8), 4.6)
def emulator(axes):
    frame(axes, 2.6, 0.4, 4.8, 1.35, "one process: models against the monotonic clock")
    box(axes, 3.9, 0.9, "wired links,\nWAN link", 2.0, 0.75, **GREYED)
    box(axes, 6.2, 0.9, "Wi-Fi: queue,\nchannel", 2.0, 0.75, **GREYED)
    for x, text, look in (
        (1.1, "server\nkernel TCP", {}),
        (5.0, "access point\nkernel, BPF, lasthop run", SHADE),
        (8.9, "station\nkernel TCP", {}),
    ):
        box(axes, x, 3.5, text, 2.9 if x == 5.0 else 1.7, 1.0, **look)
    link(axes, (1.1, 3.0), (2.6, 1.3), "TAP", lift=0.05, arrow="<|-|>")
    link(axes, (4.3, 3.0), (4.2, 1.75), "wan0", at=0.35, lift=0.0, arrow="<|-|>")
    link(axes, (5.7, 3.0), (5.8, 1.75), "wlan0", at=0.35, lift=0.0, arrow="<|-|>")
    link(axes, (8.9, 3.0), (7.4, 1.3), "TAP", lift=0.05, arrow="<|-|>")
    note(axes, 5.0, 4.35, "each a network namespace")


@schematic("What goes in and what comes out", (6.8, 2.5), 4.0)
def simulator(axes):
    box(axes, 1.3, 2.8, "scenario (TOML)", 2.0, 0.7)
    box(axes, 1.3, 1.2, "--set, --vary,\nseed", 2.0, 0.8)
    box(axes, 4.6, 2.0, "lasthop sim, sweep\nvirtual time", 2.4, 1.1, **SHADE)
    link(axes, (2.3, 2.8), (3.4, 2.2), **ARROW)
    link(axes, (2.3, 1.2), (3.4, 1.8), **ARROW)
    for y, text in (
        (3.4, "report: a table or JSON"),
        (2.5, "trace: windows over time"),
        (1.6, "capture: frames for Wireshark"),
        (0.7, "sweep: one row per run"),
    ):
        box(axes, 8.2, y, text, 3.2, 0.65)
        link(axes, (5.8, 2.0), (6.6, y), **ARROW)


@schematic("From a printed number to a verdict", (6.8, 1.6), 2.2)
def numbers(axes):
    chain(
        axes,
        1.1,
        [
            "a number\nthat a paper prints",
            "scenario with the\npaper's values",
            ("our result,\nseveral seeds", SHADE),
            "met, explained,\nor unexplained",
        ],
        height=1.0,
        share=0.76,
    )


@schematic("On a router", (7.0, 3.0), 4.8)
def router(axes):
    frame(axes, 2.4, 0.5, 5.2, 4.1, "access point (Linux 6.1 or later)")
    box(axes, 0.9, 1.6, "provider", 1.4, 0.8)
    box(axes, 9.1, 1.6, "stations", 1.4, 0.8)
    box(axes, 3.3, 1.6, "wan0", 1.1, 0.7)
    box(axes, 5.0, 1.6, "forwarding,\nNAT, firewall", 1.5, 0.9)
    box(axes, 6.7, 1.6, "wlan0\nhooks", 1.1, 0.8, **SHADE)
    box(axes, 5.0, 3.5, "lasthop run: learns, decides", 3.4, 0.7, **SHADE)
    link(axes, (1.6, 1.6), (2.75, 1.6), arrow="<|-|>")
    link(axes, (3.85, 1.6), (4.25, 1.6), arrow="<|-|>")
    link(axes, (5.75, 1.6), (6.15, 1.6), arrow="<|-|>")
    link(axes, (7.25, 1.6), (8.4, 1.6), linestyle="--", arrow="<|-|>")
    link(axes, (6.7, 3.5), (6.85, 2.0), **DASHED)
    link(axes, (6.5, 2.0), (6.3, 3.15), **DASHED)
    note(axes, 6.95, 2.7, "plans", ha="left")
    note(axes, 6.25, 2.6, "measured", ha="right")
    note(axes, 5.0, 0.8, "of a TCP segment only window and checksum change")


@schematic("What root gives away", (6.8, 2.0), 3.0)
def rights(axes):
    chain(
        axes,
        1.7,
        [
            "start: root,\nall rights",
            "programs loaded,\nhooks attached",
            ("control loop:\nfour rights", SHADE),
            "threads:\nfewer still",
        ],
        height=1.0,
        share=0.76,
    )
    note(axes, 5.0, 0.6, "Landlock: no files but its own", fontsize=8)


@schematic("Who can send what", (7.0, 2.8), 4.6)
def attacks(axes):
    y = 2.6
    box(axes, 1.0, y, "server", 1.4, 0.8)
    box(axes, 5.2, y, "access point\nwith control", 1.8, 0.9, **SHADE)
    box(axes, 9.1, y, "station", 1.4, 0.8)
    link(axes, (1.7, y), (4.3, y), arrow="<|-|>")
    link(axes, (6.1, y), (8.4, y), arrow="<|-|>")
    red = {"edgecolor": style.VERMILION}
    box(axes, 3.0, 4.0, "on path: sees\nsequence numbers", 2.1, 0.8, **red)
    box(axes, 3.0, 1.0, "off path: has to guess\nnumbers; floods of SYNs", 2.5, 0.9, **red)
    box(axes, 8.3, 0.9, "a station or server itself:\nacknowledges too early,\nignores windows", 2.9, 1.1, **red)
    link(axes, (3.0, 3.6), (3.0, 2.7), color=style.VERMILION, **ARROW)
    link(axes, (4.0, 1.45), (4.6, 2.1), color=style.VERMILION, **ARROW)
    link(axes, (8.6, 1.5), (8.9, 2.2), color=style.VERMILION, **ARROW)


@schematic("What each kernel adds", (6.8, 2.0), 3.0)
def kernels(axes):
    link(axes, (0.4, 1.5), (9.8, 1.5), color=style.GREY, **ARROW)
    for x, version, what in (
        (1.2, "6.1", "clsact hooks;\nthe oldest that works"),
        (4.0, "6.6", "tcx hooks"),
        (7.0, "6.16", "queue disciplines\nin BPF"),
        (9.2, "7.2", "the newest\ntried"),
    ):
        axes.plot((x,), (1.5,), "o", color=style.BLUE, markersize=6)
        note(axes, x, 2.0, version, fontsize=9)
        note(axes, x, 0.85, what)


@schematic("Who is served next", (6.8, 2.6), 4.2)
def qdisc(axes):
    box(axes, 1.0, 2.1, "packets", 1.5, 0.8)
    link(axes, (1.75, 2.1), (2.9, 2.1), "by flow", lift=0.08, **ARROW)
    for i, (name, credit) in enumerate((("game", 2.4), ("page", 1.5), ("download", 0.4))):
        y = 3.2 - 1.1 * i
        box(axes, 3.7, y, name, 1.4, 0.7)
        axes.add_patch(
            style.plt.Rectangle(
                (4.6, y - 0.25),
                credit,
                0.5,
                facecolor=style.GREEN if i == 0 else "#BFE5D8",
                edgecolor=style.INK,
                linewidth=0.6,
            )
        )
    note(axes, 5.8, 3.95, "credit, in air time", fontsize=8)
    box(axes, 8.8, 3.2, "served next", 1.8, 0.7, **SHADE)
    link(axes, (7.1, 3.2), (7.9, 3.2), **ARROW)
    note(axes, 8.3, 1.4, "what a packet took of the\nchannel is taken from its\nflow's credit")


@schematic("A packet's path through user space", (7.0, 2.6), 4.2)
def datapath(axes):
    frame(axes, 2.0, 2.3, 6.0, 1.7, "lasthop run --queue chap --datapath user")
    box(axes, 3.2, 2.9, "TAP", 1.1, 0.6)
    box(axes, 5.0, 2.9, "CHAP, Snoop", 1.7, 0.7, **SHADE)
    box(axes, 6.9, 2.9, "packet socket", 1.5, 0.6)
    link(axes, (3.75, 2.9), (4.15, 2.9), **ARROW)
    link(axes, (5.85, 2.9), (6.15, 2.9), **ARROW)
    box(axes, 1.0, 1.0, "forwarding", 1.5, 0.7)
    box(axes, 3.2, 1.0, "tc hook\nredirects", 1.5, 0.8)
    box(axes, 6.9, 1.0, "wlan0", 1.5, 0.7)
    box(axes, 9.2, 1.0, "stations", 1.4, 0.7)
    link(axes, (1.75, 1.0), (2.45, 1.0), **ARROW)
    link(axes, (3.2, 1.4), (3.2, 2.6), **ARROW)
    link(axes, (6.9, 2.6), (6.9, 1.35), **ARROW)
    link(axes, (7.65, 1.0), (8.5, 1.0), linestyle="--", **ARROW)


@schematic("A loss repaired at the access point", (7.0, 3.0), 5.0)
def snoop(axes):
    for x, who in ((1.2, "server"), (5.0, "access point"), (8.8, "station")):
        note(axes, x, 4.75, who, fontsize=8)
        axes.plot((x, x), (0.3, 4.5), color=style.GREY, linewidth=0.8)
    link(axes, (1.2, 4.3), (5.0, 4.0), "1", lift=0.02, **ARROW)
    link(axes, (5.0, 4.0), (6.8, 3.86), color=style.VERMILION, **ARROW)
    note(axes, 7.0, 3.83, "x", fontsize=11, color=style.VERMILION)
    link(axes, (1.2, 3.5), (5.0, 3.2), "2", lift=0.02, **ARROW)
    link(axes, (5.0, 3.2), (8.8, 2.9), "2", lift=0.02, **ARROW)
    link(axes, (8.8, 2.7), (5.0, 2.4), "1 is missing (duplicate ACK)", lift=0.1, color=style.BLUE, **ARROW)
    note(axes, 4.85, 2.4, "kept here", ha="right", color=style.BLUE)
    link(axes, (5.0, 2.1), (8.8, 1.8), "1, from the copy", lift=0.02, color=style.GREEN, **ARROW)
    link(axes, (8.8, 1.5), (5.0, 1.2), "2 acknowledged", lift=0.08, color=style.BLUE, **ARROW)
    link(axes, (5.0, 1.2), (1.2, 0.9), color=style.BLUE, **ARROW)
    note(axes, 3.0, 0.55, "the server has seen no loss")


@schematic("A message's path", (6.8, 2.0), 3.0)
def messages(axes):
    chain(
        axes,
        1.8,
        [
            "sender\nkeeps an id",
            ("server: on disk,\nthen acknowledges", SHADE),
            "recipient: checked,\non disk",
            "server deletes",
        ],
        height=1.0,
        share=0.76,
    )
    note(axes, 5.0, 0.6, "a cut anywhere: the same command goes on where it ended", fontsize=8)


@schematic("Four steps of a fetch, and why a kill between them loses nothing", (6.8, 2.0), 3.0)
def client(axes):
    chain(
        axes,
        1.8,
        ["part file\ngrows", "checked:\nSHA-256", "synced, marked,\nrenamed", ('"received" to\nthe server', SHADE)],
        height=1.0,
        share=0.76,
    )
    note(axes, 5.0, 0.6, "killed here: goes on from the part, or from the mark", fontsize=8)


@schematic("Where a slow receiver slows down", (7.0, 2.2), 3.4)
def tuning(axes):
    chain(
        axes,
        2.1,
        [
            "server",
            "channel",
            ("socket buffer\n(window)", SHADE),
            ("application\nbuffer", SHADE),
            "storage:\nwrites slowly",
        ],
        height=1.0,
        share=0.74,
    )
    note(axes, 5.0, 0.8, "tuned: both buffers at both ends, and a pause between packets", fontsize=8)


@schematic("Probes beside a load, and within it", (7.0, 3.0), 4.6)
def responsiveness(axes):
    box(axes, 1.0, 2.6, "client", 1.3, 3.2)
    box(axes, 9.0, 2.6, "server", 1.3, 3.2)
    box(axes, 5.0, 2.6, "bottleneck\nqueue", 1.5, 3.2, **SHADE)
    for y in (3.9, 3.55, 3.2):
        link(axes, (8.35, y), (5.75, y), **ARROW)
        link(axes, (4.25, y), (1.65, y), **ARROW)
    note(axes, 3.0, 4.15, "load: 1 connection, 2, 3, ..")
    foreign = {"arrow": "<|-|>", "color": style.BLUE}
    link(axes, (1.65, 2.2), (8.35, 2.2), "foreign: a connection of its own", at=0.2, lift=0.08, **foreign)
    note(axes, 3.0, 1.95, "TCP, TLS, GET of one byte: 3 times", color=style.BLUE)
    own = {"arrow": "<|-|>", "color": style.GREEN, "linestyle": "--"}
    link(axes, (1.65, 2.9), (8.35, 2.9), "self: GET of one byte in the load", at=0.2, lift=0.04, **own)
    note(axes, 5.0, 0.55, "RPM = mean of 60,000 / foreign and 60,000 / self, in ms", fontsize=8)


FIGURES = [
    Figure("glossary", "words along one path", "glossary.md", glossary),
    Figure("commands", "who runs where", "commands.md", commands),
    Figure("prometheus", "two ways to Prometheus", "prometheus.md", prometheus),
    Figure("limits", "what is controlled, and how", "limits.md", limits),
    Figure("where-changes-go", "the path of a change", "where-changes-go.md", changes),
    Figure("two-halves", "two halves and the records between them", "two-halves.md", halves),
    Figure("decisions", "what a record holds", "decisions/README.md", decisions),
    Figure("window-control", "a window's sequence numbers", "window-control.md", window_control),
    Figure("capacity", "a packet train's dispersion", "capacity.md", capacity),
    Figure("elastic", "what a UDP flow is", "elastic.md", elastic),
    Figure("outside", "the namespaces of a cell", "outside.md", outside),
    Figure("channel", "one exchange of a frame", "air.md", channel),
    Figure("connection", "the parts of a connection", "tcp/sender-receiver.md", connection),
    Figure("discrimination", "two kinds of losses", "tcp/discrimination.md", discrimination),
    Figure("split", "one connection becomes two", "tcp/split.md", split),
    Figure("metrics", "how delay and jitter are measured", "traffic-and-metrics.md", metrics),
    Figure("emulator", "real hosts, modelled links", "emulator.md", emulator),
    Figure("simulator", "what goes in and what comes out", "sim.md", simulator),
    Figure("numbers", "from a printed number to a verdict", "numbers.md", numbers),
    Figure("router", "on a router", "router.md", router),
    Figure("rights", "what root gives away", "rights.md", rights),
    Figure("attacks", "who can send what", "attacks.md", attacks),
    Figure("kernels", "what each kernel adds", "kernels.md", kernels),
    Figure("qdisc", "who is served next", "qdisc.md", qdisc),
    Figure("datapath", "a packet's path through user space", "datapath.md", datapath),
    Figure("snoop", "a loss repaired at the access point", "snoop.md", snoop),
    Figure("messages-server", "a message's path", "messages.md", messages),
    Figure("messages-client", "four steps of a fetch", "messages-client.md", client),
    Figure("responsiveness", "probes beside a load", "responsiveness.md", responsiveness),
    Figure("messages-buffers", "where a slow receiver slows down", "messages-tuning.md", tuning),
]
