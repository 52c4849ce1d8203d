"""Pings game servers with qstat and keeps what it says. Runs inside a station of the home.

ping.py FOLDER ROUNDS FIRST_S ADDRESS..

qstat sends each server one query a round, 0.15 s apart, and does not repeat it: a ping is then one packet's, as in the
paper, and the pings do not queue behind each other.
"""

import json
import os
import shutil
import subprocess
import sys
import time

from realtime import go_first

APART_MS = 150
# Longer than any queue here; what takes longer counts as lost.
PATIENCE_S = 5


def main():
    go_first()
    folder, rounds, first = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    addresses = sys.argv[4:]
    begun = time.monotonic()
    program = shutil.which("quakestat") or shutil.which("qstat")
    command = [
        program,
        "-nocfg",
        "-raw",
        ",",
        "-retry",
        "1",
        "-interval",
        str(PATIENCE_S),
        "-sendinterval",
        str(APART_MS),
        "-maxsim",
        "100",
    ]
    command += ["-default", "q3s", *addresses]
    while not os.path.exists(os.path.join(folder, "ready")):
        if time.monotonic() - begun > 60:
            sys.exit("the game server did not open its doors")
        time.sleep(0.05)
    time.sleep(max(0.0, first - (time.monotonic() - begun)))
    with open(os.path.join(folder, "pings.jsonl"), "w", buffering=1) as out:
        for turn in range(rounds):
            said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            for line in said.stdout.splitlines():
                fields = line.split(",")
                if len(fields) >= 3 and fields[1].split(":")[0] in addresses:
                    is_up = fields[0] == "Q3S" and len(fields) >= 8
                    out.write(
                        json.dumps(
                            {
                                "turn": turn,
                                "address": fields[1].split(":")[0],
                                "ping_ms": int(fields[6]) if is_up else None,
                            }
                        )
                        + "\n"
                    )
    open(os.path.join(folder, "done"), "w").close()


if __name__ == "__main__":
    main()
