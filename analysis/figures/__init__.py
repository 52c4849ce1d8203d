"""The figures of the papers, run by `lasthop sweep` and `lasthop sim` and drawn beside what was published.

`make figures` is the way in; `python -m figures --help` (in `analysis/`) the same without building.

    simulator    asks the binary for sweeps and traces, keeps what it gave
    stats        mean, spread, standard error; when two figures differ
    series       thinning of curves, cumulative counts, jitter from delays
    table        Markdown tables, and their place in a chapter of the book
    peers        what ns-2 gave, from tests/golden
    style        how a figure looks: colours, sizes, deterministic SVG
    sap_law, sap_law_sweeps, clamp, arq, arq_open, arq_classes, theory, hidden, shadowing    which sweeps make which figure

Retransmissions are counted as the papers do; the simulator's `attempts` is one more, everywhere.
"""
