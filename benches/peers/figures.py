"""What golden.py and compare.py share: the statistics of runs, and the cases of the golden files."""

import csv
import math
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent.parent / "tests" / "golden"

# Of each golden file: the columns that name a case, and the measured ones, of which a row has mean and standard deviation.
KEYS = {
    "home": ["attempts", "capacity_mbps", "distance_m", "deviation_db", "queue"],
    "arq": ["attempts", "audio_flows", "sender"],
    "cell": ["stations"],
    "hidden": ["traffic", "near_m", "far_m", "carrier_sense_w", "rts_threshold"],
    "snoop": ["source", "sender", "snoop", "flows", "error_rate", "delay_ms", "hop_ms", "rate_mbps"],
}
DELAY = ["min", "mean", "p50", "p95", "p99", "max"]
FIGURES = {
    "home": ["acked"] + [f"delay_{name}_ms" for name in DELAY] + ["jitter_mean_ms", "jitter_var_ms2", "jitter_max_ms"]
            + ["cwnd_max", "retransmitted", "timeouts"],
    "arq": ["tcp_percent", "lost_air", "lost_queue"] + [f"delay_{name}_ms" for name in DELAY],
    "cell": ["rate_mbps", "jain"],
    "hidden": ["rate_mbps", "most_mbps", "least_mbps", "near_mbps", "far_mbps"],
    # Retransmissions of the senders and of the base station, per flow.
    "snoop": ["goodput_mbps", "timely_index", "loss_rate", "delayed_rate", "jain", "retransmitted", "link_retransmitted", "loss_by_arrivals"],
}


def mean(values):
    return sum(values) / len(values) if values else math.nan


def deviation(values):
    """Between runs (n - 1)."""
    if len(values) < 2:
        return math.nan
    middle = mean(values)
    return math.sqrt(sum((v - middle) ** 2 for v in values) / (len(values) - 1))


def delay_figures(delays_ms):
    """min, mean, p50, p95, p99, max of one run; percentiles by rank."""
    ranked = sorted(delays_ms)
    if not ranked:
        return {f"delay_{name}_ms": math.nan for name in DELAY}
    rank = lambda part: ranked[min(len(ranked) - 1, int(part * len(ranked)))]
    values = [ranked[0], mean(ranked), rank(0.50), rank(0.95), rank(0.99), ranked[-1]]
    return {f"delay_{name}_ms": value for name, value in zip(DELAY, values)}


def hidden_figures(near, far):
    """Mbit/s of two stations in one run; which of two equals gets more is chance, how much more is not."""
    return {"rate_mbps": near + far, "most_mbps": max(near, far), "least_mbps": min(near, far), "near_mbps": near, "far_mbps": far}


def product(delay_ms, hop_ms=1):
    """Bandwidth-delay product of the Snoop paper's link, packets of 1000 B: sources' wires, link, sinks' wires of 1 ms."""
    return math.ceil(5e6 * 2 * (float(delay_ms) + float(hop_ms) + 1) / 1e3 / 8000)


def summary(kind, case, runs):
    """One row of a golden file from the figures of its runs (a list of dictionaries)."""
    row = {key: case[key] for key in KEYS[kind]}
    row["runs"] = len(runs)
    for figure in FIGURES[kind]:
        values = [run[figure] for run in runs if not math.isnan(run[figure])]
        row[figure] = f"{mean(values):.6g}"
        row[f"{figure}_sd"] = f"{deviation(values):.3g}"
    return row


def write_rows(path, rows):
    with open(path, "w", newline="", encoding="ascii") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path):
    with open(path, newline="", encoding="ascii") as file:
        return list(csv.DictReader(file))
