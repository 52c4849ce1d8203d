"""The book's table of the papers' numbers: every row has a verdict, and the sums are those of the rows."""

import re
import unittest

from figures.simulator import ROOT

CHAPTER = ROOT / "book" / "src" / "numbers.md"
VERDICTS = ("agrees", "explained", "unexplained")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def tables(text):
    """{heading: rows of the table below it, without its head}."""
    found = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        rows = [line for line in part.splitlines() if line.startswith("|")]
        found[part.splitlines()[0]] = [cells(row) for row in rows[2:]]
    return found


class Numbers(unittest.TestCase):
    def setUp(self):
        self.text = CHAPTER.read_text(encoding="utf-8")
        self.tables = tables(self.text)

    def test_every_row_is_whole_and_has_one_verdict(self):
        self.assertEqual(len(self.tables), 5)
        for paper, rows in self.tables.items():
            for row in rows:
                self.assertEqual(len(row), 5, (paper, row))
                kind, _, why = row[4].partition(": ")
                self.assertIn(kind, VERDICTS, (paper, row))
                self.assertEqual(kind == "explained", bool(why), (paper, row))

    def test_the_sums_are_those_of_the_rows(self):
        counted = {}
        for paper, rows in self.tables.items():
            kinds = [row[4].partition(":")[0] for row in rows]
            counted[paper] = [len(rows), *(kinds.count(verdict) for verdict in VERDICTS)]
        counted["all"] = [sum(column) for column in zip(*counted.values())]
        head = self.text.split("\n## ")[0]
        said = {}
        for line in head.splitlines():
            if line.startswith("|") and re.search(r"\d", line):
                name, *figures = cells(line)
                said[re.sub(r"\[(.*)\]\(.*\)", r"\1", name)] = figures
        self.assertEqual(set(said), set(counted))
        for paper, (rows, agree, explained, unexplained) in counted.items():
            share = f"{100 * (agree + explained) // rows} %"
            self.assertEqual(said[paper], [*map(str, (rows, agree, explained, unexplained)), share], paper)

    def test_chapters_that_are_named_exist(self):
        for name in re.findall(r"\]\(([a-z-]+\.md)\)", self.text):
            self.assertTrue((CHAPTER.parent / name).exists(), name)
