"""The cells of the matrix: each one a home, what loads it, and which bounds hold there."""

import random
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Load:
    """`n` flows of one kind, from `begins` s after the first load on."""

    kind: str  # tcp, quic, udp, ab, curl, ssh; idle, poll, push, half, talk: the connections of small.py
    n: int = 1
    direction: str = "down"
    cc: str = "cubic"
    begins: float = 0.0
    station: str = "sta"
    mbps: float = 0.0  # of udp

    @property
    def name(self):
        words = [self.kind if self.kind != "tcp" else self.cc, self.direction]
        words += [self.station] if self.station != "sta" else []
        words += [f"from {self.begins:g} s"] if self.begins else []
        return " ".join(words)

    @property
    def is_bulk(self):
        return self.kind in ("tcp", "quic")


# The device's Ethernet header counts in a shaper's rate.
ETHERNET = 14


def burst_bytes(mbps, ms):
    """What may leave a shaper at once: `ms` milliseconds' worth, and two packets at least."""
    return max(2 * (1500 + ETHERNET), int(mbps * 125 * ms))


@dataclass(frozen=True)
class Cell:
    name: str
    group: str
    loads: tuple
    down: float | None = None  # Mbit/s of the last hop towards stations, as Ethernet frames; None: no bottleneck
    up: float | None = None
    line: tuple | None = None  # Mbit/s of the provider's line, down and up
    rtt: float = 40.0
    # routed, nat, bridge (two ports), transparent (a bridge, no conntrack), series (two controllers), vlan, 464xlat
    home: str = "routed"
    place: str = "ap"  # where the last hop's queue stands: ap, or hidden, a hop behind it
    shaper: str = "htb"
    queue: str = "pfifo"  # pfifo, fq_codel, cake: what stands below that shaper towards stations
    limit: int = 1000
    line_limit: int = 256
    line_burst_ms: float = 1.0  # of its rate, what the line lets pass at once, two packets at least
    family: int = 4
    mtu: int = 1500
    offload: bool = False
    window_scale: bool = False
    beside: str = ""  # sqm, bpf
    control_at: float | None = None  # s after the first load; None: before it
    change: tuple = ()  # pairs of s and Mbit/s of the last hop towards stations; the other way changes alike, where it is shaped
    rtts: tuple = ()  # pairs of s and round trip without queues, ms
    hop_rtts: tuple = ()  # pairs of s and what the last hop adds to that, ms
    seconds: float = 20.0
    # The bounds that hold here beside those of every cell, and the load that goodput is judged by, if not all.
    bars: tuple = ("game", "goodput")
    least: float = 0.97
    game: bool = True

    @property
    def bulk(self):
        return sum(load.n for load in self.loads if load.is_bulk)


# Bounds that several cells have.
SLOW_UPLOAD = {"bars": ("slow-upload", "goodput"), "least": 0.95}
EACH = {"bars": ("each",), "least": 0.95}


def scaled(cell, times):
    """The same with other rates."""
    rate = lambda mbps: mbps and mbps * times  # noqa: E731
    return replace(
        cell,
        down=rate(cell.down),
        up=rate(cell.up),
        line=cell.line and tuple(map(rate, cell.line)),
        change=tuple((at, rate(mbps)) for at, mbps in cell.change),
        loads=tuple(replace(load, mbps=rate(load.mbps)) for load in cell.loads),
    )


def down(n=1, **more):
    return Load("tcp", n, **more)


def up(n=1, **more):
    return Load("tcp", n, direction="up", **more)


def cells():
    return everyday() + matrix() + uploads() + homes() + programs()


def everyday():
    """The cases in which the law before failed."""
    idle, pollers = Load("idle", 5), Load("poll", 6)
    return [
        Cell("idle-20", "everyday", (down(), idle), down=20),
        Cell("pollers-20", "everyday", (down(), pollers), down=20),
        Cell("pollers-6", "everyday", (down(), pollers), down=6),
        Cell("upload-line-20-2", "everyday", (up(),), line=(20, 2), **SLOW_UPLOAD),
        Cell("upload-wifi-60-line-50-5", "everyday", (up(),), down=60, up=60, line=(50, 5), **SLOW_UPLOAD),
        Cell("both-ways-line-20-2", "everyday", (down(), up()), line=(20, 2), **EACH),
        Cell("many-30-30-line-50-5", "everyday", (down(30), up(30)), line=(50, 5), **EACH, seconds=25),
        Cell(
            "bridge-two-ports",
            "everyday",
            (down(), down(station="pc")),
            down=20,
            line=(200, 200),
            home="bridge",
            bars=("game", "each"),
        ),
        Cell(
            "change-100-10-100",
            "everyday",
            (down(2),),
            down=100,
            change=((8, 10), (18, 100)),
            bars=("change", "goodput"),
            least=0.95,
            seconds=26,
        ),
        Cell("quic-and-tcp-20", "everyday", (down(), Load("quic")), down=20, bars=("game", "goodput", "ratio")),
        Cell("first-second-20", "everyday", (down(),), down=20),
        Cell("first-second-6", "everyday", (down(),), down=6),
        Cell(
            "existing-flow-20",
            "everyday",
            (down(), down(begins=8)),
            down=20,
            control_at=5,
            bars=("goodput", "fair"),
            seconds=25,
        ),
        Cell(
            "window-scale-14",
            "everyday",
            (down(8), down(8, station="second")),
            down=20,
            window_scale=True,
            bars=("goodput", "fair"),
        ),
        Cell("ten-flows-100", "everyday", (down(10),), down=100, bars=("game", "goodput", "daemon")),
        Cell("hundred-flows-100", "everyday", (down(100),), down=100, bars=("game", "goodput", "daemon")),
        Cell("quiet", "everyday", (idle,), down=20, bars=("daemon",)),
        *cost(),
    ]


def matrix():
    """20 to 100 Mbit/s, 1 to 16 flows, 10 to 100 ms."""
    found = []
    for mbps in (20, 50, 100):
        for n in (1, 4, 16):
            for rtt in (10, 40, 100):
                found.append(Cell(f"down-{mbps}-n{n}-rtt{rtt}", "matrix", (down(n),), down=mbps, rtt=rtt))
    for mbps, rtt in ((20, 100), (80, 90)):
        later = tuple(down(begins=begins) for begins in (0.0, 0.07, 0.16, 0.28))
        found.append(Cell(f"down-{mbps}-one-after-another", "matrix", later, down=mbps, rtt=rtt))
    # Each begins behind the queue that is kept of those before it.
    for way, load in (("down", down), ("up", up)):
        later = tuple(load(begins=float(begins)) for begins in range(8))
        found.append(Cell(f"{way}-line-50-20-one-every-second", "matrix", later, line=(50, 20)))
    for cc in ("reno", "bbr"):
        found.append(Cell(f"down-20-{cc}", "matrix", (down(2, cc=cc),), down=20))
    found.append(Cell("down-20-cubic-beside-bbr", "matrix", (down(), down(cc="bbr")), down=20))
    found.append(Cell("down-20-tbf", "matrix", (down(2),), down=20, shaper="tbf"))
    found.append(Cell("down-20-hidden", "matrix", (down(2),), down=20, place="hidden"))
    found.append(Cell("down-20-hidden-tbf", "matrix", (down(2),), down=20, place="hidden", shaper="tbf"))
    found.append(Cell("down-100-hidden", "matrix", (down(4),), down=100, place="hidden"))
    found.append(Cell("down-line-20-2", "matrix", (down(2),), line=(20, 2)))
    found.append(Cell("down-line-100-40", "matrix", (down(4),), line=(100, 40)))
    found.append(Cell("down-wifi-100-line-50-5", "matrix", (down(4),), down=100, line=(50, 5)))
    found.append(
        Cell("many-30-30-wifi-100-line-50-5", "matrix", (down(30), up(30)), down=100, up=100, line=(50, 5), **EACH)
    )
    found.append(Cell("up-20", "matrix", (up(2),), down=20, up=20))
    found.append(Cell("both-ways-50", "matrix", (down(), up()), down=50, up=50, bars=("each", "game"), least=0.95))
    # Each direction's ACKs wait behind the other's data, and no queue stands (Zhang, Shenker, Clark 1991).
    short = {"line": (70, 63), "rtt": 19, "bars": ("each", "game"), "least": 0.95}
    found.append(Cell("both-ways-line-70-63-rtt19", "matrix", (down(), up()), **short))
    slow = {"change": ((8, 10), (10, 50)), "bars": ("each", "change"), "least": 0.95}
    found.append(Cell("both-ways-50-slow-seconds", "matrix", (down(), up()), down=50, up=50, **slow))
    found.append(
        Cell(
            "change-100-10-rtt100",
            "matrix",
            (down(2),),
            down=100,
            rtt=100,
            change=((8, 10),),
            bars=("change",),
            seconds=20,
        )
    )
    # The path to the server becomes longer, and short again: nothing of it is a queue.
    for name, loads, where in (("down-50", down(2), {"down": 50}), ("up-line-50-10", up(2), {"line": (50, 10)})):
        changes = {"rtts": ((7, 60), (14, 40)), "bars": ("goodput",), "least": 0.95}
        found.append(Cell(f"longer-path-{name}", "matrix", (loads,), **where, **changes))
    # The last hop does, as over another node of a mesh.
    for name, loads in (("down", down(2)), ("up", up(2))):
        changes = {"hop_rtts": ((7, 6), (14, 12)), "bars": ("goodput",), "least": 0.95}
        found.append(Cell(f"longer-hop-{name}-50", "matrix", (loads,), down=50, up=50, **changes))
    return found


def uploads():
    found = []
    for mbps in (1, 2, 5):
        for rtt in (10, 40):
            found.append(
                Cell(f"upload-line-{mbps}-rtt{rtt}", "uploads", (up(),), line=(20, mbps), rtt=rtt, **SLOW_UPLOAD)
            )
    found.append(Cell("uploads-3-line-2", "uploads", (up(3),), line=(20, 2), **SLOW_UPLOAD))
    found.append(Cell("both-ways-line-50-5", "uploads", (down(2), up()), line=(50, 5), **EACH))
    return found


def homes():
    two = (down(2),)
    base = Cell("", "homes", two, down=20)
    found = [
        replace(base, name="nat", home="nat"),
        replace(
            base, name="nat-line-20-2-both-ways", home="nat", down=None, loads=(down(), up()), line=(20, 2), **EACH
        ),
        replace(base, name="ipv6", family=6),
        replace(base, name="ipv6-upload-line-20-2", family=6, down=None, loads=(up(),), line=(20, 2), **SLOW_UPLOAD),
        replace(base, name="mtu-1492", mtu=1492),
        replace(base, name="mtu-1280", mtu=1280),
        replace(base, name="offloads", offload=True),
        replace(base, name="offloads-hidden", offload=True, place="hidden"),
        replace(base, name="bridge-no-conntrack", home="transparent"),
        replace(base, name="bridge-no-conntrack-ipv6", home="transparent", family=6),
        replace(base, name="series", home="series", bars=("game", "goodput", "steady")),
        replace(
            base, name="series-line-20-2", home="series", down=None, line=(20, 2), bars=("game", "goodput", "steady")
        ),
        replace(base, name="beside-sqm", down=None, line=(20, 2), beside="sqm", loads=(down(), up()), **EACH),
        replace(base, name="beside-bpf", beside="bpf"),
        replace(base, name="464xlat", home="464xlat"),
        replace(base, name="vlan", home="vlan"),
        replace(base, name="fq-codel", queue="fq_codel", place="hidden"),
        replace(base, name="cake", queue="cake", place="hidden"),
    ]
    return found


def programs():
    base = Cell("", "programs", (), down=20)
    small = {kind: (down(), Load(kind, 5)) for kind in ("push", "half", "talk", "think")}
    return [
        *(replace(base, name=f"{kind}-20", loads=loads) for kind, loads in small.items()),
        replace(base, name="curl-with-pauses", loads=(down(), Load("curl"))),
        replace(base, name="ab-requests", loads=(down(), Load("ab", 4))),
        replace(base, name="ssh-typing", loads=(down(2), Load("ssh"))),
        replace(base, name="udp-call", loads=(down(2), Load("udp", mbps=2))),
        replace(base, name="quic-alone", loads=(Load("quic"),)),
        replace(base, name="many-64", loads=(down(64),), down=50),
    ]


# What is drawn of each kind: Mbit/s of the bottleneck, flows each way at most, and the part of its goodput without control that each keeps.
DRAWN = {
    "down": ((20, 100), 16, 0.97),
    "up": ((20, 100), 16, 0.97),
    "slow-down": ((4, 10), 6, 0.97),
    "slow-up": ((1, 5), 3, 0.95),
    "both": ((15, 60), 4, 0.95),
}


def drawn(kind, number):
    """A home between the cells, as `tools/study/bounds.py` plays it in the simulator: flows begin within 0.3 s of each other."""
    draw = random.Random(f"bounds/{kind}/{number}")
    (low, high), most, least = DRAWN[kind]
    where = "line" if kind == "slow-up" else draw.choice(("port", "hop", "line"))
    rate, flows, rtt = draw.uniform(low, high), draw.randint(1, most), draw.uniform(10, 100)
    cc = draw.choice(("cubic", "cubic", "cubic", "reno", "bbr"))
    limit = max(60, round(rate * 1e6 / 8 / 1500 * draw.choice((0.1, 0.3, 0.6))))
    home = {"down": rate, "up": rate, "limit": limit, "place": "hidden" if where == "hop" else "ap"}
    if where == "line":
        down = rate * draw.uniform(4, 20) if kind == "slow-up" else rate
        home = {"line": (down, rate), "line_limit": limit}
    ways = ("up",) if kind.endswith("up") else ("down", "up") if kind == "both" else ("down",)
    loads = tuple(Load("tcp", 1, way, cc, round(draw.uniform(0, 0.3), 3)) for way in ways for _ in range(flows))
    if where == "line":
        # A wire's pace, a kernel's shaper whose timer may be late, a provider's.
        home["line_burst_ms"] = draw.choice((0.0, 1.0, 4.0))
    bars = SLOW_UPLOAD["bars"] if kind == "slow-up" else ("game", "each") if len(ways) > 1 else ("game", "goodput")
    return Cell(f"drawn-{kind}-{number}", "drawn", loads, rtt=rtt, bars=bars, least=least, **home)


def homes_drawn(count):
    """The first so many of each kind."""
    return [drawn(kind, number) for kind in DRAWN for number in range(count)]


def cost():
    unshaped = Cell("", "everyday", (down(4),), rtt=0, game=False, seconds=8)
    return [
        replace(unshaped, name="unshaped-offloads", offload=True, bars=("forwarding",), least=12 / 17.9),
        replace(unshaped, name="unshaped-mtu", bars=("forwarding",), least=0.90),
    ]
