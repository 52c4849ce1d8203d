"""Asks a study with real programs for what it measures: `tools/study/messages.py`, in the emulator, as root.

What a study gave lies beside the simulator's answers, in a folder named by the binary's content.
"""

import json
import os
import shlex
import subprocess
import sys

from .catalogue import Skipped
from .simulator import ROOT, Failed

WHY = "it runs the emulator, which needs root, and sudo would ask for a password: type `sudo -v` first"


def part(simulator, study, name):
    """The part `name` of tools/study/STUDY.py, measured or read back."""
    folder = simulator.folder / study
    found = sorted(folder.glob(f"{study}-*.json"))
    if found and name in (parts := json.loads(found[-1].read_text(encoding="utf-8"))["parts"]):
        return parts[name]
    command = [*as_root(), sys.executable, "-B", str(ROOT / "tools" / "study" / f"{study}.py")]
    command += ["--binary", str(simulator.binary), "--out", str(folder), "--parts", name]
    command += ["--add-to", str(found[-1])] if found else []
    simulator.say("  " + shlex.join(command))
    if subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        raise Failed(f"{shlex.join(command)} ended in failure; its words stand above")
    written = sorted(folder.glob(f"{study}-*.json"))[-1]
    return json.loads(written.read_text(encoding="utf-8"))["parts"][name]


def as_root():
    """What makes a command run as root without a question; Skipped when nothing does."""
    if os.geteuid() == 0:
        return []
    sudo = ["sudo", "-n"]
    try:
        if subprocess.run([*sudo, "true"], capture_output=True, check=False).returncode == 0:
            return sudo
    except FileNotFoundError:
        raise Skipped("it runs the emulator, which needs root, and there is no sudo: run it as root") from None
    raise Skipped(WHY)
