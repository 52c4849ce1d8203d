"""Tables that notebooks show."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from ._lasthop import Home, Report


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """An HTML table; numbers stand right."""

    def cell(value: Any) -> str:
        if isinstance(value, float):
            return f'<td style="text-align:right">{value:,.4g}</td>' if abs(value) < 1e4 else f"<td>{value:,.0f}</td>"
        if value is None:
            return "<td></td>"
        return f"<td>{html.escape(str(value))}</td>"

    heads = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    lines = "".join("<tr>" + "".join(map(cell, row)) + "</tr>" for row in rows)
    return f"<table><caption>{html.escape(caption)}</caption><tr>{heads}</tr>{lines}</table>"


def of_report(report: Report) -> str:
    """A row per flow."""
    head = ["flow", "kind", "goodput, Mbit/s", "delay p50, ms", "added p99, ms", "lost, %"]

    def row(flow: dict[str, Any]) -> list[Any]:
        delay, added, loss = flow["delay"] or {}, flow["added_delay"] or {}, flow["loss_rate"]
        share = None if loss is None else 100.0 * loss
        return [flow["name"], flow["kind"], flow["goodput_bps"] / 1e6, delay.get("p50"), added.get("p99"), share]

    told = report.to_dict()
    return table(head, map(row, told["flows"]), f"{told['scenario']}, seed {told['seed']}, {told['duration_s']:g} s")


def of_home(home: Home) -> str:
    """A row per flow, and what was set."""
    sets = "; ".join(home.sets)
    caption = f"{home.name}, {home.duration_s:g} s" + (f", with {sets}" if sets else "")
    return table(["flow", "from", "to", "kind", "starts at, s"], home.flows, caption)
