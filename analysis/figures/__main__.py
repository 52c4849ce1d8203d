"""`python -m figures [--short] [NAME..]`: runs what the figures need, draws them, writes their tables into the book."""

import argparse
import sys
import time
from pathlib import Path

from . import (
    arq,
    arq_classes,
    arq_open,
    chap,
    chap_open,
    chap_window,
    clamp,
    effect,
    handoff,
    hidden,
    measure,
    messages,
    messages_wins,
    rates,
    recovery,
    recovery_wifi,
    red,
    repair,
    reverse,
    sap_law,
    sap_law_readings,
    sap_law_sweeps,
    schematics,
    senders,
    shadowing,
    snoop,
    snoop_analysis,
    snoop_findings,
    snoop_index,
    snoop_rates,
    theory,
    topology,
)
from .catalogue import Missing, Skipped
from .simulator import ROOT, Failed, Simulator
from .style import save
from .table import splice

MODULES = (sap_law, sap_law_sweeps, sap_law_readings, topology, arq, arq_open, arq_classes, chap, chap_open)
MODULES += (clamp, theory, rates, hidden, shadowing, snoop, snoop_analysis, snoop_index, snoop_findings, snoop_rates)
MODULES += (repair, handoff, reverse, red, recovery, recovery_wifi)
MODULES += (messages, messages_wins)
MODULES += (chap_window, effect, measure, schematics, senders)
CATALOGUE = [figure for module in MODULES for figure in module.FIGURES]
CACHE = ROOT / "bench-results" / "figures"
BOOK = ROOT / "book" / "src"
DRAWN, SKIPPED, FAILED = "drawn", "skipped", "failed"


def main():
    """0: all drawn, or skipped; 1: some could not be; 2: there is no such figure or no binary."""
    wanted = arguments()
    chosen = [figure for figure in CATALOGUE if figure.name in wanted.names] if wanted.names else CATALOGUE
    unknown = set(wanted.names) - {figure.name for figure in CATALOGUE}
    if unknown:
        print(
            f"there is no figure {', '.join(sorted(unknown))}; there are: {' '.join(f.name for f in CATALOGUE)}",
            file=sys.stderr,
        )
        return 2
    if not wanted.binary.exists():
        print(f"{wanted.binary} is not there; type: make figures", file=sys.stderr)
        return 2
    if wanted.short and not wanted.names:
        chosen = [figure for figure in chosen if figure.short]
    simulator = Simulator(wanted.binary, CACHE, 2 if wanted.short else None, say=note)
    # A short run has too few seeds for the book: what it draws stays apart.
    book = CACHE / "short" if wanted.short else BOOK
    ends = [draw(figure, simulator, book, into_chapters=not wanted.short) for figure in chosen]
    note(f"{ends.count(DRAWN)} of {len(chosen)} drawn, in {book / 'figures'}")
    if SKIPPED in ends:
        note(f"SKIPPED: {' '.join(figure.name for figure, end in zip(chosen, ends) if end == SKIPPED)}: see above")
    return 1 if FAILED in ends else 0


def arguments():
    parser = argparse.ArgumentParser(prog="figures", description=__doc__)
    parser.add_argument("--short", action="store_true", help="two seeds and a few figures, apart from the book's")
    parser.add_argument("--binary", type=Path, default=ROOT / "target" / "release" / "lasthop")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, such as sap-law-5")
    return parser.parse_args()


def draw(figure, simulator, book, into_chapters):
    """Draws one figure; on stderr why, when it could not be. Returns DRAWN, SKIPPED or FAILED."""
    start = time.monotonic()
    note(f"{figure.name}: {figure.title}")
    try:
        drawn = figure.make(simulator)
    except Skipped as why:
        note(f"  SKIPPED: {why}")
        return SKIPPED
    except (Failed, Missing) as error:
        note(f"  not drawn: {error}")
        return FAILED
    (book / "figures").mkdir(parents=True, exist_ok=True)
    if drawn.picture is not None:
        save(drawn.picture, book / "figures" / f"{figure.name}.svg")
    if drawn.table and into_chapters:
        chapter = book / figure.chapter
        chapter.write_text(splice(chapter.read_text(encoding="utf-8"), figure.name, drawn.table), encoding="utf-8")
    elif drawn.table:
        (book / "figures" / f"{figure.name}.md").write_text(drawn.table + "\n", encoding="utf-8")
    note(f"  {time.monotonic() - start:.1f} s")
    return DRAWN


def note(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
