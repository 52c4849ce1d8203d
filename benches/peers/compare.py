#!/usr/bin/env python3
"""Plays every case of tests/golden/ns2-*.csv in the simulator and prints both side by side.

    compare.py [home] [arq] [cell] [hidden] [snoop] [--lasthop BINARY] [--seeds N] [--json FILE]

The rule: the mean of acknowledged packets (or its rate) lies within 3 standard errors of the difference, or within 3 %;
the mean and the p95 of one-way delay, each less the smallest delay of its run, within 15 % or 0.2 ms. Fails (1) when a
case does not keep it. Of two stations that may not hear each other, the greater and the lesser rate keep it, too. In the
Snoop paper's network goodput lies within 5 %, the timely index within 0.03, the loss rate within 20 % or 0.001. Figures
without a rule are shown and not judged.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

from figures import DELAY, FIGURES, GOLDEN, HERE, KEYS, deviation, hidden_figures, mean, product, read_rows

ROOT = HERE.parent.parent
NS2_RTT = "81.5ms"   # what the runs of ns-2 multiply the rate with


def home(case):
    sets = {
        "wifi.timing": "ns2-g", "wifi.control_rate": "6Mbit/s", "wifi.attempts": case["attempts"],
        "wifi.queue.limit": case["queue"], "wifi.station_queue.limit": case["queue"],
        "wifi.loss.deviation": case["deviation_db"] + "dB", "station.*.distance": case["distance_m"] + "m",
    }
    if case["capacity_mbps"] == "":
        return "papers/sap-law.toml", sets | {"control.window": "none"}
    return "papers/sap-law.toml", sets | {
        "control.window.capacity": case["capacity_mbps"] + "Mbit/s", "control.window.interval": "200ms",
        "control.window.udp_weight": "0.2", "control.window.rtt": NS2_RTT, "control.window.share": "equal",
    }


def arq(case):
    return "papers/arq.toml", {
        "wifi.timing": "ns2-b", "wifi.attempts": case["attempts"], "flow.audio.count": case["audio_flows"], "flow.ftp.cc": case["sender"],
        "measure_from": "0s",
    }


def cell(case):
    return "bench/cell.toml", {
        "station.S.count": case["stations"], "wifi.timing": "ns2-g", "wifi.control_rate": "24Mbit/s", "measure_from": "0s",
    }


def hidden(case):
    sets = {
        "station.S.1.distance": case["near_m"] + "m", "station.S.2.distance": case["far_m"] + "m",
        "wifi.carrier_sense_threshold": case["carrier_sense_w"] + "W", "wifi.rts_threshold": case["rts_threshold"],
    }
    if case["traffic"] != "cbr":
        sender = {"kind": "ftp", "cc": "newreno", "sack": "false", "delayed_ack": "false", "initial_window": 2, "window": 1000}
        sets |= {f"flow.load.{key}": value for key, value in sender.items()}
    if case["traffic"] == "down":
        sets |= {"flow.load.from": "W", "flow.load.to": "S"}
    return "theory/hidden.toml", sets


def snoop(case):
    sets = {f"{key}.count": case["flows"] for key in ("server.A", "station.B", "flow.media")}
    sets |= {
        "flow.media.cc": case["sender"], "wireless_link.snoop": "true" if case["snoop"] == "1" else "false",
        "wireless_link.error_rate": case["error_rate"],
        "server.A.delay": case["delay_ms"] + "ms", "wireless_link.delay": case["hop_ms"] + "ms",
        "wireless_link.buffer": product(case["delay_ms"], case["hop_ms"]),
    }
    # The streams have the rate of the frames of traces.py; ns-2's Westwood+ is that of Linux.
    sets |= {"flow.media.kind": "video", "flow.media.rate": case["rate_mbps"] + "Mbit/s"} if case["source"] == "mpeg" else {}
    return "papers/snoop.toml", sets | ({"flow.media.sack": "true"} if case["sender"] == "westwood+" else {})


def flows_of(report, *kinds):
    return [flow for flow in report["flows"] if flow["kind"] in kinds]


def delays(flow):
    return {f"delay_{name}_ms": flow["delay"].get(name) for name in DELAY}


def home_figures(report):
    by_name = {flow["name"]: flow for flow in report["flows"]}
    game, tcp = by_name["game-down"], by_name["ftp"]["tcp"]
    jitter = {"jitter_mean_ms": game["jitter"]["mean"], "jitter_var_ms2": game["jitter"]["var"],
              "jitter_max_ms": game["jitter"]["max"]}
    sender = {"acked": tcp["acked_packets"]} | {key: tcp[key] for key in ("cwnd_max", "retransmitted", "timeouts")}
    return delays(game) | jitter | sender


def arq_figures(report):
    ftp, audio = flows_of(report, "ftp")[0], flows_of(report, "audio")
    # Streams of one pace and the same path: the mean over them is that over their packets, near enough for p95 as well.
    pooled = {key: mean([delays(flow)[key] for flow in audio]) for key in delays(audio[0])}
    return pooled | {
        "tcp_percent": ftp["tcp"]["acked_packets"] * 8000 / report["duration_s"] / 11e6 * 100,
        "lost_air": ftp["lost"]["air"], "lost_queue": ftp["lost"]["ap_queue"],
    }


def cell_figures(report):
    packets = [flow["tcp"]["acked_packets"] for flow in flows_of(report, "ftp")]
    return {
        "rate_mbps": sum(packets) * 12_000 / (report["duration_s"] - 1) / 1e6,
        "jain": sum(packets) ** 2 / (len(packets) * sum(count**2 for count in packets)),
    }


def hidden_pair(report):
    packets = [flow["tcp"]["acked_packets"] if flow.get("tcp") else flow["delivered"] for flow in report["flows"]]
    return hidden_figures(*(count * 12e-3 / (report["duration_s"] - 1) for count in packets))


def snoop_figures(report):
    flows = report["flows"]
    total = lambda of: sum(of(flow) or 0 for flow in flows)
    sent, delivered = total(lambda flow: flow["sent"]), total(lambda flow: flow["delivered"])
    goodput = [flow["goodput_bps"] for flow in flows]
    return {
        "goodput_mbps": sum(goodput) / 1e6, "jain": sum(goodput) ** 2 / (len(flows) * sum(x**2 for x in goodput)),
        "timely_index": total(lambda flow: (flow["timely_index"] or 0) * flow["sent"]) / sent,
        "loss_rate": total(lambda flow: (flow["loss_rate"] or 0) * flow["sent"]) / sent,
        "loss_by_arrivals": 1 - (delivered + total(lambda flow: flow["duplicates"])) / sent,
        "delayed_rate": total(lambda flow: (flow["delayed_rate"] or 0) * flow["delivered"]) / delivered,
        "retransmitted": total(lambda flow: flow["tcp"]["retransmitted"]) / len(flows),
        "link_retransmitted": total(lambda flow: flow["tcp"].get("local_retransmitted")) / len(flows),
    }


KINDS = {
    "home": (home, home_figures), "arq": (arq, arq_figures), "cell": (cell, cell_figures), "hidden": (hidden, hidden_pair),
    "snoop": (snoop, snoop_figures),
}
# How far from ns-2 a figure of the Snoop paper's network may lie.
SNOOP_KEEPS = {
    "goodput_mbps": lambda ours, theirs: abs(ours - theirs) <= 0.05 * theirs,
    "timely_index": lambda ours, theirs: abs(ours - theirs) <= 0.03,
    "loss_rate": lambda ours, theirs: abs(ours - theirs) <= max(0.2 * theirs, 0.001),
}


def run(options, scenario, sets, seed):
    command = [options.lasthop, "sim", ROOT / "scenarios" / scenario, "--seed", str(seed), "--json", "-"]
    for key, value in sets.items():
        command += ["--set", f"{key}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def throughput_keeps(ours, theirs):
    """Each (mean, standard error): within 3 standard errors of the difference or 3 %."""
    return abs(ours[0] - theirs[0]) <= max(3 * math.hypot(ours[1], theirs[1]), 0.03 * theirs[0])


def delay_keeps(ours, theirs):
    """ms above the smallest: within 15 % or 0.2 ms."""
    return abs(ours - theirs) <= max(0.15 * theirs, 0.2)


def compare(kind, row, runs):
    """Per figure: ours, ns-2's, their standard errors, and whether the rule is kept (None: not judged)."""
    result = {}
    for figure in FIGURES[kind]:
        values = [r[figure] for r in runs if r[figure] is not None]
        ours = (mean(values), deviation(values) / math.sqrt(max(len(values), 1)))
        theirs = (float(row[figure]), float(row[f"{figure}_sd"]) / math.sqrt(int(row["runs"])))
        result[figure] = {"ours": ours, "ns2": theirs, "keeps": None}
    for figure, keeps in SNOOP_KEEPS.items() if kind == "snoop" else ():
        result[figure]["keeps"] = keeps(result[figure]["ours"][0], result[figure]["ns2"][0])
    for figure in {"hidden": FIGURES[kind][:3], "snoop": []}.get(kind, FIGURES[kind][:1]):
        result[figure]["keeps"] = throughput_keeps(result[figure]["ours"], result[figure]["ns2"])
    # From here on, delay is what came on top of the smallest; that hardly varies, so the error stays what it was.
    for figure, entry in list(result.items()):
        if figure.startswith("delay_") and figure != "delay_min_ms":
            for side in ("ours", "ns2"):
                value, error = entry[side]
                entry[side] = (value - result["delay_min_ms"][side][0], error)
            result[figure.replace("delay", "added")] = result.pop(figure)
    for figure in ("added_mean_ms", "added_p95_ms"):
        if figure in result:
            result[figure]["keeps"] = delay_keeps(result[figure]["ours"][0], result[figure]["ns2"][0])
    # ns-2's Westwood is Linux's Westwood+: another sender.
    if row.get("sender") == "westwood":
        for entry in result.values():
            entry["keeps"] = None
    return result


def line(figure, entry):
    (ours, our_error), (theirs, their_error) = entry["ours"], entry["ns2"]
    error = math.hypot(our_error, their_error)
    apart = (ours - theirs) / error if error > 0 else math.nan
    per_cent = (ours / theirs - 1) * 100 if theirs else math.nan
    verdict = {True: "keeps", False: "FAILS", None: ""}[entry["keeps"]]
    digits = 4 if abs(theirs) < 10 else 2
    return f"    {figure:18}{ours:12.{digits}f}{theirs:12.{digits}f}{apart:9.1f}{per_cent:9.1f} %  {verdict}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="home, arq, cell, hidden, snoop; default all")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--lasthop", type=pathlib.Path, default=target / "release" / "lasthop")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", type=pathlib.Path, help="the whole comparison, for other programs")
    options = parser.parse_args()
    whole, failed, judged = [], 0, 0
    for kind in options.kinds or KINDS:
        scenario_of, figures_of = KINDS[kind]
        print(f"{kind:22}{'ours':>12}{'ns-2':>12}{'s.e.':>9}{'apart':>9}")
        for row in read_rows(GOLDEN / f"ns2-{kind}.csv"):
            case = {key: row[key] for key in KEYS[kind]}
            scenario, sets = scenario_of(case)
            runs = [figures_of(run(options, scenario, sets, seed)) for seed in range(1, options.seeds + 1)]
            result = compare(kind, row, runs)
            print("  " + ", ".join(f"{key} {value or '-'}" for key, value in case.items()))
            for figure, entry in result.items():
                print(line(figure, entry))
            verdicts = [entry["keeps"] for entry in result.values() if entry["keeps"] is not None]
            judged += bool(verdicts)
            failed += not all(verdicts)
            whole.append({"kind": kind, "case": case, "figures": result})
    print(f"{judged} cases judged, {failed} fail")
    if options.json:
        options.json.write_text(json.dumps(whole, indent=1) + "\n", encoding="ascii")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
