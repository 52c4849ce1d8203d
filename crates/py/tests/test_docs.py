"""What `help()` shows: every public name says what it is, its parameters, shapes and units, in one text."""

import ast
import inspect
import pathlib
import re

import lasthop
import pytest

STUBS = pathlib.Path(lasthop.__file__).parent / "_lasthop.pyi"
# How a text says a unit or a range. Shapes of lists and names stand in the types beside them.
UNIT = re.compile(r"\b(s|ms|bit/s|kB|bytes|segments|packets|seeds?|unit|rows?|events)\b|\b0 to \d|how many times")


def public():
    """(name, object) of everything that `help(lasthop)` leads to."""
    places = [(name, getattr(lasthop, name)) for name in lasthop.__all__]
    places += [(f"plot.{name}", made) for name, made in vars(lasthop.plot).items() if inspect.isfunction(made) and name[0] != "_"]
    for name, made in places:
        if inspect.isclass(made) or callable(made):
            yield name, made
        for member, of in vars(made).items() if inspect.isclass(made) else ():
            is_described = callable(of) or isinstance(of, (property, staticmethod)) or inspect.isgetsetdescriptor(of)
            if not member.startswith("_") and is_described:
                yield f"{name}.{member}", getattr(made, member)


PUBLIC = dict(public())


def section(doc, title):
    """(name, text) of the entries of a section of a docstring."""
    found = re.search(rf"^{title}:\n((?:    .*\n?|\n)+)", doc, re.MULTILINE)
    return re.findall(r"^    (\w+): ((?:.*\n?)(?:^     .*\n?)*)", found[1], re.MULTILINE) if found else []


def test_help_leads_to_everything():
    assert len(PUBLIC) > 90 and {"sweep", "Home.run", "Report.trace", "plot.delay_cdf", "Until", "Law.on_ack"} <= set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_says_what_it_takes(name):
    made = PUBLIC[name]
    doc = inspect.getdoc(made) or ""
    assert len(doc) > 15 and doc.split("\n")[0][-1] in ".:", "a sentence"
    is_made_by_others = inspect.isclass(made) and name in ("Home", "Report", "Runs", "Table", "Ack", "Window", "Interval", "Comparison", "Law")
    if not callable(made) or is_made_by_others:
        return
    parameters = [one for one in inspect.signature(made).parameters.values() if one.name != "self"]
    said = section(doc, "Args")
    assert [one for one, _ in said] == [one.name for one in parameters]
    assert all(len(text) > 5 for _, text in said)


@pytest.mark.parametrize("name", [name for name, made in PUBLIC.items() if inspect.isclass(made) and hasattr(made, "__dataclass_fields__")])
def test_what_is_kept_is_said(name):
    made = PUBLIC[name]
    said = section(inspect.getdoc(made), "Args" if name == "Until" else "Attributes")
    assert [one for one, _ in said] == list(made.__dataclass_fields__)


def test_numbers_have_units():
    """Of the extension by its stubs, of the rest by its annotations."""
    numbers = {}
    for of in (item for item in ast.parse(STUBS.read_text()).body if isinstance(item, ast.ClassDef)):
        for item in of.body:
            if isinstance(item, ast.FunctionDef) and item.returns is not None and not item.name.startswith("_"):
                numbers[f"{of.name}.{item.name}"] = ast.unparse(item.returns)
            elif isinstance(item, ast.AnnAssign):
                numbers[f"{of.name}.{item.target.id}"] = ast.unparse(item.annotation)
    for name, made in PUBLIC.items():
        if name not in numbers:
            returns = made.fget if isinstance(made, property) else made
            numbers[name] = str(getattr(returns, "__annotations__", {}).get("return", ""))
    numbers = [name for name, kind in numbers.items() if re.search(r"\b(float|int|Interval|Comparison|Table)\b", kind) and name in PUBLIC]
    assert len(numbers) > 25
    assert not [name for name in numbers if not UNIT.search(inspect.getdoc(PUBLIC[name]))]


def test_tables_say_every_column(home):
    report = home.run(trace=True, series=True)
    for name in ("trace", "series", "queue_series", "delays"):
        doc = inspect.getdoc(getattr(lasthop.Report, name))
        said = re.findall(r"^    ((?:\w+, )*\w+): ", doc, re.MULTILINE)
        assert [column for names in said for column in names.split(", ")][: len(getattr(report, name).columns)] == getattr(report, name).columns


def test_the_module_has_the_docstrings_of_its_stubs():
    """What `build.rs` read of them is what Python reads."""
    compared = 0
    for of in (item for item in ast.parse(STUBS.read_text()).body if isinstance(item, ast.ClassDef)):
        texts = {of.name: ast.get_docstring(of)}
        for item, after in zip(of.body, [*of.body[1:], None]):
            if isinstance(item, ast.FunctionDef):
                texts[f"{of.name}.{item.name}"] = ast.get_docstring(item)
            elif isinstance(item, ast.AnnAssign) and isinstance(after, ast.Expr):
                texts[f"{of.name}.{item.target.id}"] = inspect.cleandoc(after.value.value)
        for name, said in texts.items():
            if said and name in PUBLIC:
                assert inspect.getdoc(PUBLIC[name]) == said, name
                compared += 1
    assert compared > 65
