"""The papers' block diagrams and topologies, drawn from the scenarios: SAP-LAW's figure 2, CHAP's figures 2 and 3."""

import tomllib

from . import style
from .catalogue import Drawn, Figure
from .simulator import SCENARIOS


def scenario(name):
    with (SCENARIOS / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)


def canvas(title, size=(6.4, 3.2), width=10.0, height=5.0):
    made, axes = style.figure(title, "", "", size)
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return made, axes


def box(axes, x, y, text, width=1.3, height=0.7, **how):
    """A box around (x, y) with a text in it."""
    look = {"facecolor": "white", "edgecolor": style.INK, "linewidth": 0.9, **how}
    axes.add_patch(style.plt.Rectangle((x - width / 2, y - height / 2), width, height, zorder=2, **look))
    axes.text(x, y, text, ha="center", va="center", fontsize=8, zorder=3)


def link(axes, a, b, text="", arrow="-", at=0.5, lift=0.12, **how):
    """A line from `a` to `b`; the text stands above it, a share `at` of the way."""
    look = {"color": style.INK, "linewidth": 0.9, **how}
    axes.annotate("", b, a, arrowprops={"arrowstyle": arrow, "shrinkA": 0, "shrinkB": 0, **look}, zorder=1)
    x, y = (p + at * (q - p) for p, q in zip(a, b))
    if text:
        patch = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
        axes.text(x, y + lift, text, ha="center", va="bottom", fontsize=7, bbox=patch)


def sap_law(_):
    """Figure 2 of SAP-LAW."""
    home = scenario("papers/sap-law")
    made, axes = canvas("Simulated topology")
    line, air = home["wan"], home["wifi"]
    box(axes, 3.6, 2.5, "W0")
    box(axes, 6.2, 2.5, "AP\n(in the HEC)", facecolor="#EEEEEE")
    for i, server in enumerate(home["server"]):
        y = 4.2 - 1.7 * i
        box(axes, 0.8, y, server["name"])
        words = f"{server['delay']}, {server['rate']},\n{server['buffer']} packets"
        link(axes, (1.45, y), (2.95, 2.5 + 0.2 * (1 - i)), words, at=0.55, lift=-0.2)
    link(
        axes,
        (4.25, 2.5),
        (5.55, 2.5),
        f"{line['delay']},\n{line['rate_down']},\n{line['buffer_down']} packets",
        lift=0.1,
    )
    for i, station in enumerate(home["station"]):
        y = 4.4 - 1.25 * i
        flows = sorted(
            {flow["name"].split("-")[0] for flow in home["flow"] if station["name"] in (flow["from"], flow["to"])}
        )
        box(axes, 8.9, y, f"{station['name']}\n{', '.join(flows)}", width=2.1, height=0.85)
        link(axes, (6.85, 2.5), (7.85, y), linestyle="--")
    radio = f"{air['standard']}, {air['rate']}; {home['station'][0]['distance']}, {air['loss']['deviation']}"
    axes.text(6.0, 0.2, f"dashed: {radio}", fontsize=7, ha="center")
    return Drawn(made)


def chap(_):
    """Figure 2 of CHAP: what stands in the access point, by the names that it has here."""
    made, axes = canvas("CHAP inside the access point", height=5.2)
    axes.add_patch(style.plt.Rectangle((1.9, 0.3), 6.2, 4.6, facecolor="#F6F6F6", edgecolor=style.INK, linewidth=0.8))
    axes.text(2.0, 4.62, "access point", fontsize=8)
    box(axes, 0.8, 2.5, "Internet")
    box(axes, 9.2, 2.5, "stations")
    box(axes, 5.0, 4.1, "downstream queue\n(core::credit::scheduler)", 2.9)
    box(axes, 5.0, 2.5, "table of flows with credit\n(core::credit::account)", 2.9, facecolor="#E4E4E4")
    box(axes, 5.0, 0.9, "upstream queue\n(core::credit::scheduler)", 2.9)
    box(axes, 7.45, 2.5, "802.11\ndata link", 1.1, 3.8)
    arrow = {"arrow": "-|>"}
    link(axes, (1.45, 2.7), (3.55, 4.1), "packets down", at=0.42, lift=0.2, **arrow)
    link(axes, (6.45, 4.1), (6.9, 4.1), **arrow)
    link(axes, (6.9, 0.9), (6.45, 0.9), **arrow)
    link(axes, (3.55, 0.9), (1.45, 2.3), "packets up", at=0.5, lift=-0.5, **arrow)
    link(axes, (8.0, 2.5), (8.55, 2.5), arrow="<|-|>")
    control = {"arrow": "-|>", "linestyle": "--"}
    link(axes, (5.0, 2.85), (5.0, 3.75), **control)
    link(axes, (5.0, 2.15), (5.0, 1.25), **control)
    link(axes, (6.9, 2.5), (6.45, 2.5), **control)
    axes.text(5.12, 3.3, "greatest credit first", fontsize=7, va="center")
    axes.text(6.82, 2.08, "time on the\nchannel", fontsize=7, va="top", ha="right")
    axes.text(
        5.0, 0.02, "solid: packets; dashed: what the credits are told and tell", fontsize=7, ha="center", va="bottom"
    )
    return Drawn(made)


def test_bed(_):
    """Figure 3 of CHAP, with the values of the scenario of case study 1."""
    home = scenario("papers/chap-web")
    line, bridge = home["wan"], home["bridge"]
    made, axes = canvas("Topology of the case studies", size=(6.4, 2.7), height=4.2)
    box(axes, 0.8, 2.1, "Internet")
    box(axes, 3.4, 2.1, "ADSL\nmodem")
    queue = f"FIFO or CHAP,\n{bridge['queue']['limit']} packets"
    box(axes, 6.2, 2.1, f"Linux bridge\n{queue}", 1.9, 1.1, facecolor="#EEEEEE")
    box(axes, 9.2, 3.3, "browser, or\ngame", 1.4, 0.8)
    box(axes, 9.2, 0.9, "download of\na DVD", 1.4, 0.8)
    link(axes, (1.45, 2.1), (2.75, 2.1), f"{line['rate_down']} down\n{line['rate_up']} up")
    link(axes, (4.05, 2.1), (5.25, 2.1))
    link(axes, (7.15, 2.2), (8.5, 3.3))
    link(axes, (7.15, 2.0), (8.5, 0.9))
    axes.text(6.2, 0.85, f"every packet: eq. (1)\nand {bridge['extra']}", fontsize=7, ha="center", va="center")
    return Drawn(made)


FIGURES = [
    Figure("sap-law-2", "simulated topology", "sap-law.md", sap_law),
    Figure("chap-2", "components of CHAP", "chap.md", chap),
    Figure("chap-3", "topology of CHAP's case studies", "chap.md", test_bed),
]
