"""What each congestion control does with its window: one download through a queue, and over a lossy link.

The path is that of `scenarios/papers/recovery-link.toml` without its streams: 5 Mbit/s, a queue of 50 packets, a round
trip of 42 ms without queueing, one seed. It is an illustration for the head of a chapter; nothing is concluded from it.
"""

from . import style
from .catalogue import Drawn, Figure, Missing
from .series import as_steps, thin

PATH = "papers/recovery-link"
ALONE = {"duration": "30s", "flow.audio": "none", "flow.video": "none"}
WIDE = {"flow.download.window": 1000}  # segments: the receiver's window never limits
ERRORS = {"no errors: a queue of 50 packets": "0", "0.5 % of the packets lost on the link": "0.005"}
COLOURS = (style.BLUE, style.VERMILION, style.GREEN)
LINK = 5.0  # Mbit/s


def windows(words, more=None):
    """The congestion window of each sender in `words` beside NewReno's, in grey; `more` settings for all."""

    def make(simulator):
        made, both = style.plt.subplots(1, 2, figsize=(7.2, 2.6), sharey=True)
        for axes, (title, rate) in zip(both, ERRORS.items()):
            axes.set(title=title, xlabel="time [s]", xlim=(0, 30))
            shown = [("newreno", style.GREY)] if "newreno" not in words else []
            for word, colour in shown + list(zip(words, COLOURS)):
                settings = {**ALONE, **WIDE, **(more or {}), "wireless_link.error_rate": rate, "flow.download.cc": word}
                curve = simulator.trace(PATH, settings).curve("download", "cwnd")
                if not curve:
                    raise Missing("the trace holds no cwnd")
                style.line(axes, thin(as_steps(curve, 30.0)), color=colour, label=word)
            axes.set_ylim(0, 120)
        both[0].set_ylabel("cwnd [packets]")
        both[1].legend(loc="upper right", ncols=2)
        return Drawn(made)

    return make


def rates(word):
    """The rate that a rate-based sender allows itself."""

    def make(simulator):
        made, both = style.plt.subplots(1, 2, figsize=(7.2, 2.6), sharey=True)
        for axes, (title, rate) in zip(both, ERRORS.items()):
            axes.set(title=title, xlabel="time [s]", xlim=(0, 30), ylim=(0, 7))
            settings = {**ALONE, "wireless_link.error_rate": rate, "flow.download.cc": word}
            settings |= {f"flow.download.{key}": "none" for key in ("sack", "delayed_ack", "initial_window")}
            curve = simulator.trace(PATH, settings).curve("download", "bandwidth_bps", 1e-6)
            if not curve:
                raise Missing("the trace holds no bandwidth_bps")
            style.line(axes, thin(curve), color=style.BLUE, label=word)
            style.level(axes, LINK, "the link", color=style.GREY)
        both[0].set_ylabel("allowed rate [Mbit/s]")
        both[1].legend(loc="upper right", ncols=2)
        return Drawn(made)

    return make


NO_BLOCKS = {"flow.download.sack": "false"}  # with SACK blocks Reno and NewReno recover alike
SHOWN = (
    ("westwood", ("westwood", "westwood-abse")),
    ("westwood-plus", ("westwood+",)),
    ("aimd", ("aimd",)),
    ("real", ("tcp-real",)),
    ("probing", ("tcp-probing",)),
    ("wtcp", ("wtcp",)),
    ("cubic", ("cubic",)),
    ("bbr", ("bbr",)),
    ("vegas", ("vegas",)),
)
RENO = ("tahoe", "reno", "newreno")
FIGURES = [Figure("cc-reno", "window of Tahoe, Reno, NewReno", "tcp/reno.md", windows(RENO, NO_BLOCKS))]
FIGURES += [
    Figure(f"cc-{name}", f"window of {', '.join(words)}", f"tcp/{name}.md", windows(words)) for name, words in SHOWN
]
FIGURES += [Figure(f"cc-{word}", f"rate of {word}", f"tcp/{word}.md", rates(word)) for word in ("tfrc", "ssvp")]
