"""What a figure is: a name, the chapter that holds it, and a function that makes it from the simulator's answers."""

from collections.abc import Callable
from dataclasses import dataclass


class Missing(Exception):
    """What the simulator gave lacks what the figure shows."""


class Skipped(Exception):
    """This machine, as it is, cannot run what the figure needs; said aloud, and no failure."""


@dataclass(frozen=True)
class Drawn:
    """What a figure's function gives: a matplotlib figure, a Markdown table, or both."""

    picture: object = None
    table: str = ""


@dataclass(frozen=True)
class Figure:
    """One entry of the catalogue; `short`: it is among those that a short run draws."""

    name: str
    title: str
    chapter: str
    make: Callable
    short: bool = False
