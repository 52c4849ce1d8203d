"""The Markdown beside the results of the study of messages: every part's rows as they were measured."""

TITLES = {
    "packets": "Figure 2: application packets, s",
    "acks": "ACKs by application packet, storage unlimited: downloads, s",
    "ratio": "Table 2: device and desktop, by file and packet, s",
    "segments": "Table 3 and figure 3: one traced transfer each",
    "access": "Figures 4 and 5: files written and read, s",
    "delays": "Scenario (a), table 4, s",
    "sleeps": "Table 4's download on the paper's own device, by how much is received at once, s",
    "bound": "Scenario (b), bound by storage, s",
    "path": "500 Mbit/s and 20 ms of round trip, bit/s of payload",
    "memory": "4 GiB over that path: s, and the most memory of clients, kB",
}


def text(results):
    """The whole document."""
    lines = [
        f"# Messages for slow receivers: measured at revision {results['revision']}",
        "",
        f"By `make figures ARGS=\"messages-..\"`, on {results['machine']}; {'; '.join(results['programs'])}. Medians of {results['runs']}, least and",
        f"most; p99 lag of the runs at most {results['lag_p99_ms']:.3f} ms.",
    ]
    for name, part in results["parts"].items():
        lines += ["", f"## {TITLES[name]}", ""]
        facts = [f"{key} = {value}" for key, value in part.items() if not isinstance(value, (list, dict))]
        lines += [", ".join(facts), ""] if facts else []
        lines += table(part["rows"])
        if "rates" in part:
            lines += ["", "Over the storage's rate, kB/s:", "", *table(part["rates"])]
        if "tune" in part:
            lines += ["", "What `tune` kept:", "", *profile(part["tune"].get("profile", {}))]
    return "\n".join(lines) + "\n"


def table(rows):
    """Rows of scalars; longer things stand in the JSON alone."""
    keys = [key for key in rows[0] if not isinstance(rows[0][key], (list, dict))]
    body = [[cell(row.get(key)) for key in keys] for row in rows]
    return ["| " + " | ".join(line) + " |" for line in [keys, ["---"] * len(keys), *body]]


def cell(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def profile(found):
    """Every key that it sets."""
    lines = [
        f"    {way}.{end}.{key} = {value}"
        for way, ends in found.items()
        for end, keys in ends.items()
        for key, value in keys.items()
        if value is not None
    ]
    return lines or ["    nothing"]
