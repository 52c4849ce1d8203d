"""What the tests share: a home that takes milliseconds, and the program `lasthop` of the same sources."""

import os
import pathlib
import subprocess

import lasthop
import pytest

HOME = """
format = 1
name = "small"
duration = "4s"
seed = 3
[[server]]
name = "W"
[wifi]
rate = "54Mbit/s"
[[station]]
name = "A"
[[station]]
name = "B"
[[flow]]
name = "game-down"
from = "W"
to = "A"
kind = "game-server"
[[flow]]
name = "ftp"
from = "W"
to = "B"
kind = "ftp"
"""

TRACE = "".join(f"{i} {'I' if i % 12 == 0 else 'P'} {40 * i} {3000 if i % 12 == 0 else 900}\n" for i in range(60))


@pytest.fixture
def home():
    """The home of `HOME`."""
    return lasthop.parse(HOME, "small.toml")


@pytest.fixture
def scenario(tmp_path):
    """The file of `HOME`."""
    path = tmp_path / "small.toml"
    path.write_text(HOME)
    return path


class Program:
    """The program `lasthop`."""

    def __init__(self, path):
        self.path = path

    def __call__(self, *arguments, code=0):
        """What it says on stdout and stderr."""
        done = subprocess.run([self.path, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout, done.stderr


@pytest.fixture(scope="session")
def program():
    """As `LASTHOP_BINARY` names it."""
    path = os.environ.get("LASTHOP_BINARY", "")
    if not pathlib.Path(path).is_file():
        pytest.skip("LASTHOP_BINARY names no program to compare with")
    return Program(path)
