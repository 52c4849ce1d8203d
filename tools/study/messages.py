"""The study of paper 003: messages for a slow receiver, over 802.11b in the emulator, with real kernel TCP.

    messages.py --binary LASTHOP [--parts packets,ratio] [--runs 5] [--out FOLDER] [--add-to FILE]

Runs as root: it makes the homes of scenarios/papers/messages*.toml with `lasthop emulate`, `lasthop message serve` in the host
`W` and `lasthop message send | fetch | tune` in the device `PDA` (or the desktop `PC`). Writes
bench-results/messages-REVISION.{json,md}: medians of `--runs`. A transfer's time is that of the message alone: from the
connection that is open and known to the message that is safe at the other end. `--parts` plays some parts; `--add-to` keeps the
others of an earlier file.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
from pathlib import Path

import messages_plan as plan
import messages_table
import messages_trace as trace
from common import OUT, Unusable, emulate, give_back, keep, machine, say, until_usable, version

HERE = Path(__file__).resolve().parent
PORT = 7003
# Devices that read and write at the same time: each has a storage of its own.
DEVICES = 16


class Study:
    """Where runs go and how many there are of each."""

    def __init__(self, wanted):
        self.binary, self.runs = wanted.binary.resolve(), wanted.runs
        self.folder = wanted.out / "study" / "messages"
        self.revision, self.lag_ms = None, 0.0

    def play(self, name, steps, host="PDA", home=plan.BOUND_HOME, sets=None, traced=False):
        """What the steps gave, played in `host` with a server beside it, and the trace's connections.

        `steps` of a counted host: {member: list}.
        """
        say(name)
        return until_usable(name, lambda: self._play(name, steps, host, home, sets or {}, traced))

    def _play(self, name, steps, host, home, sets, traced):
        here = self.folder / name
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir(parents=True)
        by_host = steps if isinstance(steps, dict) else {host: steps}
        alone = all(step["do"] in ("write", "read") for mine in by_host.values() for step in mine)
        programs = [] if alone else [("W", self.server(here))]
        *others, last = by_host
        for each, mine in by_host.items():
            waits_for = [str(here / f"{other}.done") for other in others] if each == last else []
            told = {"lasthop": str(self.binary), "folder": str(here), "steps": mine, "waits_for": waits_for}
            (here / f"{each}.json").write_text(json.dumps(told))
            words = [
                sys.executable,
                "-B",
                "-S",
                "-E",
                HERE / "messages_host.py",
                here / f"{each}.json",
                here / f"{each}.jsonl",
            ]
            programs.append((each, "exec " + " ".join(map(str, words))))
        more = ["--end-with", last] + (["--trace", here / "trace.jsonl"] if traced else [])
        report = emulate(self.binary, home, sets, programs, here / "lasthop.log", more)
        self.revision = report["run"]["revision"]
        self.lag_ms = max(self.lag_ms, report["run"]["lag_ms"]["p99"])
        files = [here / f"{each}.jsonl" for each in by_host]
        results = [json.loads(line) for file in files if file.exists() for line in file.read_text().splitlines()]
        if len(results) != sum(map(len, by_host.values())):
            raise Unusable(f"{len(results)} steps were played; see {here / 'lasthop.log'}")
        return results, trace.connections(here / "trace.jsonl") if traced else [], here

    def server(self, here):
        """The command of the host W: accounts, iperf3's server, what the server needs of memory, and the server."""
        serve, address = f"{self.binary} message serve --store $LASTHOP_STORAGE/store", f"$LASTHOP_W:{PORT}"
        add = [f"{serve} --add {name} --address {address} --output {here}/{name}.toml" for name in ("me", "you")]
        memory = f"(while sleep 0.2; do grep VmHWM /proc/$$/status > {here}/memory; done) &"
        return f"{' && '.join(add)} && touch {here}/ready; iperf3 -s >/dev/null 2>&1 & {memory} exec {serve} --listen {address}"


def seconds(result):
    """How long the one message of a step took, the connection left out."""
    message = result["said"]["messages"][0]
    return message["took_s"] - message["connecting_s"]


def medians(results, keys, value=seconds):
    """Median, least and most of `value(result)` by the values of `keys`: a list of rows."""
    groups = {}
    for one in results:
        groups.setdefault(tuple(one[key] for key in keys), []).append(value(one))
    return [
        {**dict(zip(keys, group)), "median": statistics.median(of), "min": min(of), "max": max(of), "n": len(of)}
        for group, of in groups.items()
    ]


def transfers(results):
    return [one for one in results if one["do"] in plan.WAYS]


def said(tuned):
    """What `tune` said, but for where on this machine it kept it."""
    return {**tuned["said"], "kept": Path(tuned["said"]["kept"] or "").name}


def packets(study):
    """Figure 2."""
    tunings = {size: plan.packet(size) for size in plan.PACKETS}
    results, _, _ = study.play("packets", plan.transfers(study.runs, [plan.PACKETS_KB], tunings))
    return {"kb": plan.PACKETS_KB, "rows": medians(results, ("do", "tuning"))}


def acks(study):
    """Whether segments and ACKs become fewer with larger packets: downloads to a device whose storage takes no time."""
    tunings = {size: plan.packet(size) for size in plan.ACK_PACKETS}
    steps = plan.transfers(study.runs, [plan.TABLE_4_KB], tunings, ("fetch",))
    results, connections, _ = study.play("acks", steps, sets={"station.PDA.storage": "none"}, traced=True)
    looks = [{**one, **trace.transfer(lines)} for one, lines in zip(results, connections[1:])]
    rows = medians(looks, ("tuning",))
    for row in rows:
        mine = [one for one in looks if one["tuning"] == row["tuning"]]
        row["acks"] = statistics.median(one["acks"] for one in mine)
        row["segments"] = statistics.median(one["segments"] for one in mine)
    return {"kb": plan.TABLE_4_KB, "rows": rows}


def ratio(study):
    """Table 2, and for the shorter files the same with the packet of scenario (b)."""
    rows = []
    steps = plan.transfers(study.runs, plan.SIZES_KB, {4096: plan.packet(4096)})
    steps += plan.transfers(study.runs, plan.SIZES_KB[:3], {plan.BOUND_BYTES: plan.BOUND})
    for host in ("PDA", "PC"):
        results, _, _ = study.play(f"ratio-{host}", steps, host)
        rows += [{"host": host, **row} for row in medians(results, ("do", "kb", "tuning"))]
    return {"rows": rows}


def segments(study):
    """Table 3 and figure 3, and the download of scenario (b) with and without pacing: one traced transfer each."""
    kb = plan.TABLE_4_KB
    tunings = {
        "4096": plan.packet(4096),
        "bound": plan.BOUND,
        "paced": [*plan.packet(16384), "fetch.sender.pacing=400kB/s"],
    }
    steps = plan.transfers(1, [kb], tunings)
    results, connections, _ = study.play("segments", steps, traced=True)
    # The first connection carried the message that is fetched.
    mine = connections[-len(results) :]
    return {
        "kb": kb,
        "rows": [
            {"do": one["do"], "tuning": one["tuning"], "seconds": seconds(one), **trace.transfer(lines)}
            for one, lines in zip(results, mine)
        ],
    }


def access(study):
    """Figures 4 and 5: files written and read without a network, by several devices at the same time."""
    steps = plan.accesses(study.runs, DEVICES)
    results, _, _ = study.play("access", steps, sets={"station.PDA.count": DEVICES})
    return {"rows": medians(results, ("do", "kb", "buffer"), lambda one: one["seconds"])}


def delays(study):
    """Scenario (a), table 4: before, with the paper's own "after", after `tune`; then before and after over storage rates."""
    kb = plan.TABLE_4_KB
    before = {"before": plan.TABLE_4, "paper's after": plan.TABLE_4_AFTER}
    steps = plan.transfers(study.runs, [kb], before)
    steps += [{"do": "tune", "sets": plan.TABLE_4}] + plan.transfers(study.runs, [kb], {"tuned": None})
    results, _, _ = study.play("delays", steps, home=plan.DELAYS)
    tuned = next(one for one in results if one["do"] == "tune")
    rates = []
    for rate in plan.RATES:
        steps = plan.transfers(study.runs, [kb], {"before": plan.TABLE_4}, ("fetch",))
        steps += [{"do": "tune", "sets": plan.TABLE_4}] + plan.transfers(study.runs, [kb], {"tuned": None}, ("fetch",))
        sets = {"station.PDA.storage": plan.storage(rate)}
        of_rate, _, _ = study.play(f"delays-{rate}", steps, home=plan.DELAYS, sets=sets)
        rates += [{"rate": rate, **row} for row in medians(transfers(of_rate), ("do", "tuning"))]
    return {"kb": kb, "rows": medians(transfers(results), ("do", "tuning")), "tune": said(tuned), "rates": rates}


def sleeps(study):
    """Table 4's download on the paper's own device: one sleep a packet, one for each third of a packet, and none."""
    kb = plan.TABLE_4_KB
    tunings = {"4096": plan.TABLE_4, "1366": plan.THIRDS, "1366, no delays": plan.THIRDS_AFTER}
    steps = plan.transfers(study.runs, [kb], tunings, ("fetch",))
    rows = []
    for device, storage in plan.OWN_DEVICES.items():
        sets = {"station.PDA.storage": storage}
        results, connections, _ = study.play(f"sleeps-{len(rows)}", steps, home=plan.DELAYS, sets=sets, traced=True)
        # The first connection carried the message that is fetched.
        looks = [{**one, **trace.transfer(lines)} for one, lines in zip(results, connections[1:])]
        for row in medians(looks, ("tuning",)):
            mine = [one for one in looks if one["tuning"] == row["tuning"]]
            row["least_window"] = statistics.median(trace.least(one["window"]) for one in mine)
            row["longest_silence_ms"] = statistics.median(one["longest_silence_ms"] for one in mine)
            rows.append({"device": device, **row})
    return {"kb": kb, "rows": rows}


def bound(study):
    """Scenario (b): before, each remedy alone, and after `tune`, all traced."""
    kb = plan.TABLE_4_KB
    tunings = {name: plan.BOUND + sets for name, sets in plan.REMEDIES.items()}
    steps = plan.transfers(study.runs, [kb], tunings, ("fetch",)) + plan.transfers(
        study.runs, [kb], {"as it is": plan.BOUND}, ("send",)
    )
    steps += [{"do": "tune", "sets": plan.BOUND}] + plan.transfers(study.runs, [kb], {"tuned": None})
    results, connections, _ = study.play("bound", steps, traced=True)
    index = next(i for i, one in enumerate(results) if one["do"] == "tune")
    after = len(results) - index - 1
    lines = connections[1 : index + 1] + connections[len(connections) - after :]
    looks = [{**one, **trace.transfer(of)} for one, of in zip(transfers(results), lines)]
    rows = medians(looks, ("do", "tuning"))
    for row in rows:
        mine = [one for one in looks if (one["do"], one["tuning"]) == (row["do"], row["tuning"])]
        row["least_window"] = statistics.median(trace.least(one["window"]) for one in mine)
        row["acks"] = statistics.median(one["acks"] for one in mine)
        row["longest_silence_ms"] = statistics.median(one["longest_silence_ms"] for one in mine)
    return {"kb": kb, "rows": rows, "tune": said(results[index])}


def path(study):
    """500 Mbit/s and 20 ms: iperf3 and the messenger by turns in one run, both ways."""
    steps = []
    for run in range(study.runs):
        for way in plan.WAYS:
            steps.append(
                {"do": "iperf", "seconds": plan.PATH_IPERF_S, "reverse": way == "fetch", "way": way, "run": run}
            )
            steps.append({"do": way, "kb": plan.PATH_KB, "way": way, "sets": [], "run": run})
    results, _, _ = study.play("path", steps, sets=plan.PATH)
    rate = [
        {
            **one,
            "bps": one.get("bps") or 8 * 1024 * one["kb"] / seconds(one),
            "with": "iperf3" if one["do"] == "iperf" else "message",
        }
        for one in results
    ]
    return {"kb": plan.PATH_KB, "rows": medians(rate, ("way", "with"), lambda one: one["bps"])}


def memory(study):
    """A file of 4 GiB over the same path: the most that server and clients had of memory."""
    steps = [{"do": way, "kb": plan.GIGABYTES_4_KB, "sets": []} for way in plan.WAYS]
    results, _, here = study.play("memory", steps, sets=plan.PATH)
    server_kb = int((here / "memory").read_text().split()[1])
    rows = [{"do": one["do"], "seconds": seconds(one), "client_kb": one["children_kb"]} for one in results]
    return {"kb": plan.GIGABYTES_4_KB, "rows": rows, "server_kb": server_kb}


PARTS = {part.__name__: part for part in (packets, acks, ratio, segments, access, delays, sleeps, bound, path, memory)}


def main():
    parser = argparse.ArgumentParser(
        prog="messages.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument(
        "--add-to", type=Path, help="results of the same revision and machine, to which these parts are added"
    )
    wanted = parser.parse_args()
    wanted.out = wanted.out.resolve()
    unknown = set(wanted.parts) - set(PARTS)
    if unknown:
        raise SystemExit(f"there is no part {', '.join(sorted(unknown))}; there are: {' '.join(PARTS)}")
    if os.geteuid() != 0:
        raise SystemExit("the emulator makes network namespaces: run this as root")
    study = Study(wanted)
    parts = {name: PARTS[name](study) for name in wanted.parts}
    results = {
        "study": "messages",
        "revision": study.revision,
        "machine": machine(),
        "runs": study.runs,
        "programs": [version("iperf3", "--version")],
        "lag_p99_ms": study.lag_ms,
        "parts": parts,
    }
    if wanted.add_to:
        results = joined(results, json.loads(wanted.add_to.read_text()))
    text = messages_table.text(results)
    print(text)
    say(f"written: {keep(wanted.out, 'messages', results, text)}")
    give_back(wanted.out)


def joined(results, before):
    """`results` with the parts of an earlier file that they lack."""
    for key in ("study", "revision", "machine", "runs"):
        if before[key] != results[key]:
            raise SystemExit(f"the earlier file has another {key}: {before[key]}")
    lag = max(before["lag_p99_ms"], results["lag_p99_ms"])
    return {**results, "lag_p99_ms": lag, "parts": {**before["parts"], **results["parts"]}}


if __name__ == "__main__":
    main()
