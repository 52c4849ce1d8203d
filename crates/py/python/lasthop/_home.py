"""Homes: where scenarios come from, and how values of Python become what `--set` takes."""

from __future__ import annotations

import difflib
import json
import math
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any

from ._lasthop import Home

PACKAGED = pathlib.Path(__file__).parent / "scenarios"


def scenarios() -> list[str]:
    """The packaged scenarios: those of the papers, of the book's chapters and of its studies.

    Returns:
        Names that `load` takes, in the order of the alphabet: `homes/evening`, `papers/sap-law`, ...
    """
    return sorted(str(path.relative_to(PACKAGED).with_suffix("")) for path in PACKAGED.rglob("*.toml"))


def load(scenario: str | os.PathLike[str]) -> Home:
    """The home of a scenario's file, or of a packaged scenario.

    Args:
        scenario: a file, by its suffix `.toml` or since it is there; else the name of a packaged scenario, whole or its last part
            (`homes/evening`, `evening`).

    Returns:
        The home, as it stands there.

    Raises:
        ValueError: there is no such scenario, or its file is wrong: file, line, key, and what would be right.
    """
    path = pathlib.Path(scenario)
    if path.suffix == ".toml" or path.is_file():
        return Home.load(path)
    name = path.as_posix()
    found = [known for known in scenarios() if known == name or known.endswith("/" + name)]
    if len(found) == 1:
        return Home.load(PACKAGED / f"{found[0]}.toml")
    if found:
        raise ValueError(f"{name}: is {' or '.join(found)}")
    known = scenarios()
    parts = {part: whole for whole in known for part in (whole, whole.rpartition("/")[2])}
    near = list(dict.fromkeys(parts[part] for part in difflib.get_close_matches(name, parts)))
    what = "is no file, and no packaged scenario is called so"
    raise ValueError(f"{scenario}: {what}; {'near it: ' + ', '.join(near) + '; ' if near else ''}lasthop.scenarios() has all {len(known)}")


def parse(text: str, file: str = "scenario.toml") -> Home:
    """The home of a scenario's text.

    Args:
        text: TOML; every key is in `schema/scenario.toml`.
        file: what errors call it; traces are looked for beside it.

    Returns:
        The home.

    Raises:
        ValueError: file, line, key, and what would be right.
    """
    return Home.parse(text, file)


def change(home: Home, keys: Mapping[str, Any] | None, named: Mapping[str, Any]) -> Home:
    """What `Home.set` does."""
    if keys is not None and not isinstance(keys, Mapping):
        raise TypeError(f"keys: {keys!r} is no mapping; write set({{'wifi.queue.limit': 7}}) or set(wifi__queue__limit=7)")
    pairs = [*(keys or {}).items(), *((name.replace("__", "."), value) for name, value in named.items())]
    return home._with([f"{key}={written(value)}" for key, value in pairs])


def written(value: Any) -> str:
    """A value as `--set` takes it: text as it is, None as `none`, mappings and lists as TOML."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    return _toml(value)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # Strings of JSON are strings of TOML but for the one character that TOML wants escaped and JSON does not.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if hasattr(value, "item"):  # a number of numpy's
        value = value.item()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value) if value != int(value) or abs(value) >= 1e15 else str(int(value))
    raise ValueError(f"{value!r} is no value of a scenario; give text, a number, True, False, None, a mapping or a list")


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)
