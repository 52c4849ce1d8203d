#!/usr/bin/env python3
"""What Lasthop costs on a small router: instructions, counted by emulated machines, and what share of a core that comes to.

    tools/study/small_router.py --cases FOLDER [--lasthopd FILE] [--machines arm64 armhf] [--results FILE] [--book FILE|-]
    tools/study/small_router.py --from FILE [--book FILE|-]      the tables anew, from what was counted before

FOLDER is what `cargo bench -p lasthop-live --bench fastpath -- --write FOLDER` wrote; FILE a lasthopd for the first of the machines,
without which the controller is not counted. Kernels and programs are Debian's, fetched below target/vm; QEMU's clock counts instructions
there (`tools/vm/run --count`). A machine takes some minutes. No root needed. Exit code 1: a case failed in a guest.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from marked import fill

ROOT = Path(__file__).resolve().parents[2]
VM = ROOT / "tools" / "vm"
BOOK = ROOT / "book" / "src" / "small-routers.md"
# Kernel of tools/vm/kernels.txt, suite of its programs, compiler of what runs there.
MACHINES = {
    "arm64": ("arm64-6.12", "trixie", "aarch64-linux-gnu-gcc"),
    "armhf": ("armhf-6.12", "trixie", "arm-linux-gnueabihf-gcc"),
    "amd64": ("amd64-6.12", None, "gcc"),   # with this machine's own programs
}
TITLES = {"arm64": "Cortex-A53", "armhf": "Cortex-A7 (32 bit)", "amd64": "x86-64"}
MEMORY_MB = 256
PACKET_BITS = 1500 * 8
# Of what was assumed: name, machine whose instructions it executes, clock in Hz, instructions per cycle from..to.
PROCESSORS = (
    ("Cortex-A53, 1.3 GHz", "arm64", 1.3e9, (0.5, 1.0)),
    ("Cortex-A7, 0.7 GHz", "armhf", 700e6, (0.4, 0.9)),
    ("MIPS 1004Kc, 880 MHz", "armhf", 880e6, (0.3, 0.7)),
    ("MIPS 24KEc, 580 MHz", "armhf", 580e6, (0.3, 0.7)),
)
PACKETS = (
    ("data_measured_and_passed", "data segment of a download, measured and passed"),
    ("ack_rewritten", "ACK, its window lowered"),
    ("ack_with_sack_rewritten", "ACK with SACK, its window lowered"),
    ("udp_of_a_game", "datagram of a game"),
    ("udp_full", "full datagram"),
    ("neither_tcp_nor_udp", "ping"),
)
BESIDE = (
    ("tcx_udp_full", "Lasthop's hook on a full datagram, in place, by tcx"),
    ("clsact_udp_full", "the same by a filter of clsact"),
    ("tbf_fq_codel", "tbf with fq_codel"),
    ("cake", "cake, shaping"),
    ("nat", "connection tracking and address translation"),
)


def target():
    return (ROOT / os.environ.get("CARGO_TARGET_DIR", "target")).resolve()


def output(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(done.returncode)
    return done.stdout.strip()


def prepare(machine, arguments):
    """What the guest takes, in a folder of its own."""
    folder = target() / "vm" / "small-router" / machine
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    output(MACHINES[machine][2], "-O1", "-static", "-o", folder / "loop", VM / "loop.c")
    for name in ("cases.json", "bench.bpf.o"):
        shutil.copy(arguments.cases / name, folder)
    if machine == arguments.machines[0] and arguments.lasthopd:
        shutil.copy(arguments.lasthopd, folder / "lasthopd")
    return folder


def count(machine, arguments):
    """Boots the machine and returns its figures, and whether every case passed."""
    name, suite, _compiler = MACHINES[machine]
    kernel = output(VM / "fetch", target() / "vm", name)
    root = output(VM / "arm64", "root", target() / "vm", machine, suite) if suite else "/"
    folder = prepare(machine, arguments)
    cases = ["count-packets"]
    if (folder / "lasthopd").exists():
        cases.append("count-controller")
    words = [VM / "run", "--count", "--seconds", "2400", "--memory", MEMORY_MB, "--root", root]
    for shared in (VM, ROOT / "schema", target() / "vm"):
        words += ["--with", shared]
    words += [kernel, VM / "guest", kernel, folder / "lasthopd", *cases]
    print(f"=== {machine}", flush=True)
    guest = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True, errors="replace")
    figures = {}
    for line in guest.stdout:
        print(line, end="", flush=True)
        if match := re.match(r"FIGURE (\S+) (.*)", line):
            figures[match[1]] = float(match[2]) if re.fullmatch(r"-?[0-9.]+", match[2]) else match[2]
        elif match := re.match(r"Kernel (\S+)", line):
            figures["kernel"] = match[1]
    return figures, guest.wait() == 0


def way(figures):
    """How packets are treated there where the kernel may choose: compiled where it can compile everything."""
    return "compiled" if figures.get("compiled_is_compiled") == "True" else "interpreted"


def number(value):
    return "–" if value is None else f"{value:,.0f}"


def packets(machines):
    columns = [(TITLES[name], figures, kind) for name, figures in machines.items() for kind in ("compiled", "interpreted")
               if f"{kind}_udp_full" in figures]
    lines = ["| packet | " + " | ".join(f"{name}, {title(kind, figures)}" for name, figures, kind in columns) + " |",
             "|---|" + "---|" * len(columns)]
    for key, words in PACKETS:
        lines.append(f"| {words} | " + " | ".join(number(figures.get(f"{kind}_{key}")) for _name, figures, kind in columns) + " |")
    return "\n".join(lines)


def title(kind, figures):
    if kind == "compiled" and figures.get("compiled_is_compiled") != "True":
        return "compiler on (it cannot compile this)"
    return "compiled" if kind == "compiled" else "interpreted"


def beside(machines):
    machines = {name: figures for name, figures in machines.items() if "forwarding" in figures}
    lines = ["| added to plain forwarding of a packet | " + " | ".join(TITLES[name] for name in machines) + " |", "|---|" + "---|" * len(machines)]
    plain = [figures["forwarding"] for figures in machines.values()]
    lines.append("| *(plain forwarding itself)* | " + " | ".join(map(number, plain)) + " |")
    for key, words in BESIDE:
        cells = [f"{number(f.get(key))} ({f[key] / p:.0%})" if key in f else "–" for f, p in zip(machines.values(), plain)]
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def controller(figures):
    lines = ["| case | decisions in a second | instructions per decision | per second | share of a Cortex-A53, 1.3 GHz, estimated | of the hook: per packet to stations | per packet from them |",
             "|---|---|---|---|---|---|---|"]
    for key, words in (("idle", "nothing passes"), ("game", "a game, 50 packets a second"), ("downloads_10", "10 downloads"),
                       ("downloads_100", "100 downloads"), ("merged_10", "10 downloads, packets merged")):
        if f"{key}_per_second" not in figures:
            continue
        rate = f", {figures[key + '_bps'] / 1e6:.0f} Mbit/s" if f"{key}_bps" in figures else ""
        cells = [f"{figures[key + '_decisions_per_second']:.1f}", number(figures[key + "_per_decision"]), number(figures[key + "_per_second"])]
        cells.append(percent(figures[key + "_per_second"], *PROCESSORS[0][2:]))
        cells += [number(figures.get(f"{key}_{hook}_per_packet")) for hook in ("egress", "ingress")]
        lines.append(f"| {words}{rate} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def percent(instructions, clock, cycles):
    low, high = (instructions / clock / ipc * 100 for ipc in reversed(cycles))
    form = lambda value: f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"
    return f"{form(low)} to {form(high)} %"


def per_second(figures, rate, segments, each=None):
    """Instructions in a second for full packets one way, merged so many at a time, and one ACK for every two of them, at most one
    for each bundle: of Lasthop's data path, or of what takes `each` instructions for every packet."""
    full, acks = rate / PACKET_BITS / segments, rate / PACKET_BITS / max(2, segments)
    of = lambda key: each or figures[f"{way(figures)}_{key}"]
    return full * of("data_measured_and_passed") + acks * of("ack_with_sack_rewritten")


def estimated(machines):
    segments = next((bundle(figures) for figures in machines.values() if "merged_10_bps" in figures), 10)
    lines = [
        f"| one core of | takes | 100 Mbit/s | 100 Mbit/s, merged {segments:.0f} at a time | 1 Gbit/s | 1 Gbit/s, merged |",
        "|---|---|---|---|---|---|",
    ]
    for name, machine, clock, cycles in PROCESSORS:
        figures = machines.get(machine)
        if not figures:
            continue
        rows = [("Lasthop's data path", None), ("*cake*", figures["cake"]), ("*forwarding, with translation*", figures["forwarding"] + figures["nat"])]
        for what, each in rows:
            cells = [percent(per_second(figures, rate, many, each), clock, cycles) for rate in (100e6, 1e9) for many in (1, segments)]
            # What takes merged packets apart costs for each segment.
            if what == "*cake*":
                cells[1] = cells[3] = "as without"
            lines.append(f"| {name} | {what} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def bundle(figures):
    """Segments of a bundle in the guest."""
    return figures["merged_10_bps"] / 8 / 1448 / figures["merged_10_egress_packets_per_second"]


def start(figures):
    seconds = [figures["start"] / 1.3e9 / ipc for ipc in (1.0, 0.5)]
    busy = figures.get("busy_VmRSS_kb")
    return "\n".join([
        "| | |", "|---|---|",
        f"| instructions of the start, the kernel's verifier included | {number(figures['start'] / 1e6)} million |",
        f"| on a Cortex-A53 at 1.3 GHz, estimated | {seconds[0]:.1f} to {seconds[1]:.1f} s |",
        f"| ready after, on the guest's clock, which runs ahead while it waits for its host | {figures['start_ms'] / 1e3:.1f} s |",
        f"| memory of the process: resident, of that its own; at most so far | {number(figures['VmRSS_kb'])}, {number(figures['RssAnon_kb'])}; {number(figures['VmHWM_kb'])} kB |",
        *([f"| resident beside 10 downloads, after 100 | {number(busy)} kB |"] if busy else []),
        f"| memory of the kernel for maps and programs | {number(figures['maps_kb'] + figures['progs_kb'])} kB |",
        f"| what the machine has less: while it starts, at most; then | {number(figures['start_memory_kb'])}; {number(figures['memory_kb'])} kB |",
    ])


def write(result, book):
    machines = result["machines"]
    head = f"{result['head']}.\n\n"
    tables = {"estimated": estimated(machines), "packets": packets(machines), "beside": beside(machines)}
    for name, figures in machines.items():
        if "start" in figures:
            words = f"On {TITLES[name]}.\n\n"
            tables |= {"controller": words + controller(figures), "start": words + start(figures)}
    if book == "-":
        print(head, *tables.values(), sep="\n\n")
        return
    fill(Path(book), "make small-router", {name: head + table for name, table in tables.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--lasthopd", type=Path)
    parser.add_argument("--machines", nargs="+", default=["arm64", "armhf"], choices=MACHINES)
    parser.add_argument("--results", type=Path, help="JSON of all figures")
    parser.add_argument("--from", dest="source", type=Path)
    parser.add_argument("--book", default=str(BOOK), help="- prints")
    arguments = parser.parse_args()
    if arguments.source:
        write(json.loads(arguments.source.read_text()), arguments.book)
        return
    if not arguments.cases:
        parser.error("--cases says what to run")
    revision = output("git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=12")
    emulator = output("qemu-system-aarch64", "--version").splitlines()[0]
    counted = {machine: count(machine, arguments) for machine in arguments.machines}
    kernels = ", ".join(f"Linux {figures.get('kernel', '?')}" for figures, _passed in counted.values())
    result = {"head": f"Lasthop {revision}, {emulator}, {kernels}", "machines": {name: f for name, (f, _passed) in counted.items()}}
    results = arguments.results or ROOT / "bench-results" / f"small-router-{revision}.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(result, indent=1) + "\n")
    print(results)
    if not all(passed for _figures, passed in counted.values()):
        sys.exit(1)
    write(result, arguments.book)


main()
