"""The recorded terminal: what a terminal shows after what was written to it."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "study"))

import terminal  # noqa: E402


def shown(text):
    return ["".join(character for character, _ in line) for line in terminal.screen(text)]


class Screen(unittest.TestCase):
    def test_progress_that_is_written_over_is_gone(self):
        self.assertEqual(shown("10 % done\r\x1b[K20 %\r\n"), ["20 %", ""])
        self.assertEqual(shown("abcdef\rxy"), ["xycdef"])

    def test_colours_are_looks_and_not_words(self):
        (line,) = terminal.screen("a \x1b[1;31mbad\x1b[0m b")
        self.assertEqual(list(terminal.runs(line)), [(0, "a ", ""), (2, "bad", "1;31"), (5, " b", "")])

    def test_what_a_program_says_does_not_end_the_picture(self):
        (line,) = terminal.screen("</text><script>")
        self.assertNotIn("<script>", terminal.draw([line], "title"))


if __name__ == "__main__":
    unittest.main()
