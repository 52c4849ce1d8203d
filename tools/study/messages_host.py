"""Runs inside a host of the emulator: plays steps with `lasthop message`, one after the other, writes what each took.

    messages_host.py PLAN.json RESULTS.jsonl

The plan: {"lasthop": path, "folder": folder of the accounts `me.toml` and `you.toml`, "steps": [..]}. A step is one of

    {"do": "send" | "fetch", "kb": size, "sets": [KEY=VALUE..]}   one message of kb x 1024 bytes; no sets: the kept profile
    {"do": "tune", "sets": [KEY=VALUE..]}                          measures a device with this profile, and keeps a new one
    {"do": "write" | "read", "kb": size, "buffer": bytes}          a file in calls of so many bytes, no network
    {"do": "iperf", "seconds": n, "reverse": bool}                 iperf3 to the server

and whatever else it holds is written back beside the result. Messages lie in $LASTHOP_STORAGE, the host's own storage. What
is sent goes to the mailbox `you`; what is fetched, again and again, was put into the mailbox `me` before the first step.
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

STORAGE = Path(os.environ.get("LASTHOP_STORAGE", "."))
# How long the server may take to make its accounts and its certificate.
PATIENCE_S = 20.0


class Host:
    """One host and its plan."""

    def __init__(self, plan):
        self.lasthop, self.folder = plan["lasthop"], Path(plan["folder"])
        self.messages = {}

    def prepare(self, steps):
        """The files to send, the messages to fetch, the server to talk to."""
        wanted = {step["kb"] for step in steps if step["do"] in ("send", "fetch")}
        if wanted or any(step["do"] == "tune" for step in steps):
            wait_for(self.folder / "ready")
        for kb in sorted(wanted):
            make_file(kb)
        for kb in sorted({step["kb"] for step in steps if step["do"] == "fetch"}):
            self.messages[kb] = self.message("send", "--to", "me", file_of(kb), sets=())["said"]["messages"][0][
                "message"
            ]

    def message(self, verb, *arguments, sets=None):
        """One call of `lasthop message`: what it said, and how long it took. `sets` take the place of the profile."""
        command = [self.lasthop, "message", verb, "--account", self.folder / "me.toml", "--json", "-"]
        if verb != "tune":
            command += ["--state", self.folder / "state"]
        if sets is not None:
            command += ["--profile", "none"] + [word for each in sets for word in ("--set", each)]
        command = [str(word) for word in [*command, *arguments]]
        start = time.perf_counter()
        done = subprocess.run(command, cwd=STORAGE, capture_output=True, text=True, check=False)
        wall_s = time.perf_counter() - start
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-600:]}")
        return {"wall_s": wall_s, "said": json.loads(done.stdout)}

    def send(self, step):
        return self.message("send", "--to", "you", file_of(step["kb"]), sets=step.get("sets"))

    def fetch(self, step):
        into = STORAGE / "fetched"
        into.mkdir(exist_ok=True)
        for old in into.iterdir():
            old.unlink()
        return self.message("fetch", "--keep", "--into", into, self.messages[step["kb"]], sets=step.get("sets"))

    def tune(self, step):
        """From the tuning of the step, which is the device's profile until then."""
        (self.folder / "me.profile.toml").write_text(profile(step["sets"]))
        return self.message("tune", "--storage", STORAGE)

    def write(self, step):
        """A file, written in calls of `buffer` bytes."""
        block = bytes(step["buffer"])
        with open(STORAGE / "access", "wb", buffering=0) as file:
            start = time.perf_counter()
            for size in calls(step):
                file.write(block[:size])
            return {"seconds": time.perf_counter() - start}

    def read(self, step):
        """The file that `write` left, read in calls of `buffer` bytes."""
        block = memoryview(bytearray(step["buffer"]))
        with open(STORAGE / "access", "rb", buffering=0) as file:
            start = time.perf_counter()
            for size in calls(step):
                if file.readinto(block[:size]) != size:
                    raise SystemExit("the file is shorter than it was written")
            return {"seconds": time.perf_counter() - start}

    def iperf(self, step):
        wait_for(self.folder / "ready")
        command = ["iperf3", "-c", os.environ["LASTHOP_W"], "-J", "-t", str(step["seconds"])]
        command += ["-R"] if step.get("reverse") else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = json.loads(done.stdout)
        if "error" in said:
            raise SystemExit(f"{' '.join(command)}: {said['error']}")
        return {"bps": said["end"]["sum_received"]["bits_per_second"]}


def profile(sets):
    """KEY=VALUE as a profile's file."""
    pairs = [text.split("=", 1) for text in sets]
    ends = sorted({key.rsplit(".", 1)[0] for key, _ in pairs})
    lines = {
        end: [f'{key.rsplit(".", 1)[1]} = "{value}"' for key, value in pairs if key.rsplit(".", 1)[0] == end]
        for end in ends
    }
    return "".join(f"[{end}]\n" + "\n".join(of) + "\n" for end, of in lines.items())


def wait_for(path, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    while not path.exists():
        if time.monotonic() > end:
            raise SystemExit(f"nobody made {path}")
        time.sleep(0.05)


def calls(step):
    """Sizes of the calls that a file takes."""
    whole, rest = divmod(step["kb"] * 1024, step["buffer"])
    return [step["buffer"]] * whole + ([rest] if rest else [])


def file_of(kb):
    return STORAGE / f"message-{kb}.bin"


def make_file(kb):
    """A message of that size; no byte of it repeats."""
    with open(file_of(kb), "wb", buffering=0) as file:
        left = kb * 1024
        while left:
            left -= file.write(os.urandom(min(left, 1 << 18)))


def main():
    plan_file, results = sys.argv[1:]
    plan = json.loads(Path(plan_file).read_text())
    host = Host(plan)
    host.prepare(plan["steps"])
    with open(results, "a", buffering=1) as out:
        for step in plan["steps"]:
            begin = time.clock_gettime(time.CLOCK_MONOTONIC)
            gave = getattr(host, step["do"])(step)
            memory_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            out.write(json.dumps({**step, **gave, "began_s": begin, "children_kb": memory_kb}) + "\n")
            time.sleep(0.1)
    Path(results).with_suffix(".done").touch()
    # The run ends with this host.
    for other in plan.get("waits_for", ()):
        wait_for(Path(other), patience_s=3600.0)


if __name__ == "__main__":
    main()
