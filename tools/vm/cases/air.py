"""The case `air`: what hostapd, wpa_supplicant, mac80211 and minstrel_ht do over our air, beside what our models do.

air.py run AIR SEED       plays all of it; needs the namespace `station`, and radios that AIR (crates/hwsim/examples/air.rs) makes
air.py monitor SECONDS    writes `ready`, then {"BYTES": [TID, ..]} of the encrypted data frames that the monitor interface hwsim0 saw
air.py sink               takes UDP on port 9, after `ready`

Lines `ROW table | cell | ..` are what tools/vm/air_table.py makes its tables of.
"""

import collections
import glob
import json
import os
import queue
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback

FIRST = ["nsenter", "--net=/proc/1/ns/net"]
STATION = ["ip", "netns", "exec", "station"]
ADDRESSES = {"access point": "10.9.0.1", "station": "10.9.0.2"}
STATION_MAC = "02:00:00:00:01:00"
# MAC header with QoS, CCMP header and MIC, LLC/SNAP, IP, UDP, FCS.
AROUND = 26 + 8 + 8 + 8 + 20 + 8 + 4
VOICE = 46 << 2
COUNTERS = ["carried", "acked", "uncontended", "strange", "malformed", "overflowed", "refused", "overruns"]
RATE_EVERY, RATE_BYTES = 0.005, 1400
CLASSES = ["Be", "Bk", "Bk", "Be", "Vi", "Vi", "Vo", "Vo"]   # by user priority
# Frames to settle and to be watched, and how long that may take: a guest may be slow. Too slow, and nothing is compared.
SETTLE, WATCH, LOOK_S = (1500, 30), (1000, 15), 0.2
LEAST = 700
CELLS = [
    ("n 20 MHz", dict(standard="n", width=20, streams=2, guard=400), 5),
    ("n 40 MHz", dict(standard="n", width=40, streams=2, guard=400), 3),
    ("ac 80 MHz", dict(standard="ac", width=80, streams=4, guard=400), 3),
]


def row(*fields):
    print("ROW", " | ".join(str(field) for field in fields))


def shell(*words, **options):
    return subprocess.run(words, check=True, text=True, capture_output=True, **options).stdout


def until(seconds, what, condition):
    last = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > last:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.2)
    return found


class Air:
    """The program between the radios. Everything it told of frames is in `frames` and `addbas`."""

    def __init__(self, program, cell, seed, snr):
        words = [f"--{name}={value}" for name, value in cell.items()]
        self.process = subprocess.Popen(
            [*FIRST, program, *words, f"--seed={seed}", f"--snr={snr}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.answers, self.frames, self.addbas = queue.Queue(), [], []
        self.started = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()
        if not self.started.wait(30):
            raise AssertionError("the air did not make its radios")

    def read(self):
        for line in self.process.stdout:
            told = json.loads(line)
            if "answer" in told:
                self.answers.put(told["answer"])
            elif "radios" in told:
                self.started.set()
            else:
                (self.addbas if "addba" in told else self.frames).append(told)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.answers.get(timeout=20)
        assert "error" not in answer, answer
        return answer

    def close(self):
        self.process.stdin.close()
        if self.process.wait(timeout=20) != 0:
            raise AssertionError("the air ended with an error")


class Cell:
    """An access point and its station over one air, WPA2. What it began it ends."""

    def __init__(self, program, cell, seed):
        self.air = self.hostapd = self.supplicant = self.sink = None
        try:
            self.air = Air(program, cell, seed, 30)
            self.interface = self.take("air0", "netns", str(os.getpid()))
            other = self.take("air1", "netns", "name", "station")
            shell("ip", "-n", "station", "link", "set", other, "name", "sta0")
            self.configure(cell)
            self.hostapd = subprocess.Popen(["hostapd", "/tmp/hostapd.conf"], stdout=open("/tmp/hostapd.log", "w"), stderr=subprocess.STDOUT)
            until(60, "the access point is up", lambda: "AP-ENABLED" in open("/tmp/hostapd.log").read())
            self.supplicant = subprocess.Popen(
                [*STATION, "wpa_supplicant", "-i", "sta0", "-c", "/tmp/wpa_supplicant.conf"],
                stdout=open("/tmp/wpa_supplicant.log", "w"), stderr=subprocess.STDOUT,
            )
            shell("ip", "addr", "add", "10.9.0.1/24", "dev", self.interface)
            shell("ip", "-n", "station", "addr", "add", "10.9.0.2/24", "dev", "sta0")
            # In world roaming it listens at 5180 MHz for a ninth of a second, every 5 s, and a beacon comes in one of five of these: in 60 s
            # one station in seventeen hears none, in 240 s one in 80,000.
            until(240, "the station is connected", lambda: "CTRL-EVENT-CONNECTED" in open("/tmp/wpa_supplicant.log").read())
            subprocess.run([*STATION, "iw", "dev", "sta0", "set", "power_save", "off"], check=False)
            # What nobody listens to is answered by ICMP, in class VO, and that collides.
            self.sink = subprocess.Popen([*STATION, sys.executable, __file__, "sink"], stdout=subprocess.PIPE, text=True)
            assert self.sink.stdout.readline() == "ready\n"
        except BaseException:
            self.complain()
            self.close()
            raise

    def complain(self):
        """What is known when something went wrong."""
        if self.air:
            print("the air:", self.air.ask("counters"), self.air.frames[-3:])
        for log in ("/tmp/hostapd.log", "/tmp/wpa_supplicant.log"):
            if os.path.exists(log):
                print(f"{log}:\n{open(log).read()[-3000:]}")

    def take(self, radio, *where):
        """Moves a radio to another namespace; its interface."""
        interface = until(10, radio, lambda: glob.glob(f"/sys/class/ieee80211/{radio}/device/net/*"))[0].rsplit("/", 1)[1]
        shell(*FIRST, "iw", "phy", radio, "set", *where)
        return interface

    def configure(self, cell):
        lines = [
            f"interface={self.interface}", "driver=nl80211", "ssid=lasthop", "hw_mode=a", "channel=36", "wmm_enabled=1", "ieee80211n=1",
            # A guest that is late for seven beacons in a row loses its station.
            "beacon_int=500", "wpa=2", "wpa_key_mgmt=WPA-PSK", "rsn_pairwise=CCMP", "wpa_passphrase=lasthop-test", "disassoc_low_ack=0",
        ]
        wide = "[HT40+]" if cell["width"] > 20 else ""
        lines.append(f"ht_capab={wide}[SHORT-GI-20][SHORT-GI-40]")
        if cell["standard"] == "ac":
            lines += ["ieee80211ac=1", "vht_oper_chwidth=1", "vht_oper_centr_freq_seg0_idx=42", "vht_capab=[SHORT-GI-80]"]
        open("/tmp/hostapd.conf", "w").write("\n".join(lines) + "\n")
        open("/tmp/wpa_supplicant.conf", "w").write('network={\n ssid="lasthop"\n psk="lasthop-test"\n scan_freq=5180\n}\n')

    def close(self):
        for process in (self.sink, self.supplicant, self.hostapd):
            if process and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait()
        if self.air:
            self.air.close()

    def expects(self):
        """Packets of 1,200 bytes a second that minstrel_ht expects of its first rate (rc80211_minstrel_ht.c: kbit/s of 1,024)."""
        text = shell("iw", "dev", self.interface, "station", "get", STATION_MAC)
        found = re.search(r"expected throughput:\s*([\d.]+)Mbps", text)
        return float(found[1]) * 1e3 * 1024 / 9600 if found else None


class Stream(threading.Thread):
    """UDP from the access point to the station, a packet each 5 ms, until told to stop."""

    def __init__(self, tos):
        super().__init__(daemon=True)
        self.stopped, self.tos = threading.Event(), tos
        self.start()

    def run(self):
        wire = udp(self.tos)
        due = time.monotonic()
        while not self.stopped.is_set():
            wire.sendto(bytes(RATE_BYTES), (ADDRESSES["station"], 9))
            due += RATE_EVERY
            time.sleep(max(0.0, due - time.monotonic()))

    def stop(self):
        self.stopped.set()
        self.join()


def udp(tos):
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    wire.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    return wire


def traffic(title, cell):
    """Ping and TCP both ways; agreements that follow."""
    ping = shell("ping", "-c", "5", "-i", "0.2", ADDRESSES["station"]).splitlines()
    lost = next(line for line in ping if "packet loss" in line)
    assert " 0% packet loss" in lost, ping
    received = {}
    server = subprocess.Popen([*STATION, "iperf3", "-s"], stdout=subprocess.DEVNULL)
    try:
        until(20, "iperf3 listens", lambda: ":5201" in shell(*STATION, "ss", "-tln"))
        for direction, words in (("down", []), ("up", ["-R"])):
            told = json.loads(shell("iperf3", "-c", ADDRESSES["station"], "-n", "3M", "--json", *words))
            received[direction] = told["end"]["sum_received"]["bytes"]
            assert received[direction] >= 2**20, received   # what is on its way in the end is not counted
    finally:
        server.kill()
        server.wait()
    protected = sum(frame["protected"] for frame in cell.air.frames)
    # The handshake's four messages, a late one of which is repeated.
    clear = [frame["bytes"] for frame in cell.air.frames if not frame["protected"]]
    assert protected > 500 and 4 <= len(clear) <= 20 and max(clear) < 300, (protected, clear)
    clear = len(clear)
    row("association", title, "WPA2-PSK, CCMP", ping[-1].split("=")[1].strip(), f"{received['down']:,} / {received['up']:,}", protected, clear)


def agreements(title, cell, ours):
    """ADDBA of every TID that was used, and ours."""
    by = collections.defaultdict(dict)
    for told in cell.air.addbas:
        by[told["from"] if told["addba"] == "request" else told["to"], told["tid"]][told["addba"]] = told
    used = {(frame["from"], frame["tid"]) for frame in cell.air.frames if frame["protected"]}
    for sender, tid in sorted(used):
        pair = by.get((sender, tid))
        ours_aggregates = CLASSES[tid] in ours["aggregates"]
        assert bool(pair) == ours_aggregates, f"TID {tid}: mac80211 {pair}, ours {ours}"
        if pair:
            request, response = pair["request"], pair.get("response")
            assert response and response["status"] == 0, pair
            assert request["immediate"] and response["buffer"] == ours["window"], pair
        text = f"{pair['request']['buffer']} / {pair['response']['buffer']}" if pair else "none"
        row("addba", title, "access point" if sender == 0 else "station", tid, CLASSES[tid], text, ours["window"] if ours_aggregates else "none")


def marks(title, cell, ours):
    """Every code point's TID, in the medium and on the monitor interface."""
    monitor = subprocess.Popen([*FIRST, sys.executable, __file__, "monitor", "8"], stdout=subprocess.PIPE, text=True)
    assert monitor.stdout.readline() == "ready\n"
    before = len(cell.air.frames)
    for dscp in range(64):
        udp(dscp << 2).sendto(bytes(300 + dscp), (ADDRESSES["station"], 9))
        time.sleep(0.01)
    heard = json.loads(monitor.communicate()[0])
    carried = collections.defaultdict(set)
    for frame in cell.air.frames[before:]:
        if frame["from"] == 0 and frame["protected"]:
            carried[frame["bytes"] - AROUND - 300].add(frame["tid"])
    tid_of = {}
    for dscp in range(64):
        tids, seen = carried[dscp], set(heard.get(str(AROUND + 300 + dscp - 4), []))
        assert tids == seen and len(tids) == 1, (dscp, tids, seen)
        tid_of[dscp] = tids.pop()
    differ = {dscp for dscp, tid in tid_of.items() if CLASSES[tid] != ours["classes"][dscp]}
    named = set(ours["named"])
    # cfg80211 knows the code points of RFC 8325, of LE (RFC 8622) nothing, and takes the upper three bits of all others.
    assert differ & named <= {1}, differ & named
    others = set(range(64)) - named
    assert all(tid_of[dscp] == dscp >> 3 for dscp in others | {1}), tid_of
    row("dscp", title, f"{len(named) - len(differ & named)} of {len(named)}", sorted(differ & named), f"{len(others) - len(differ & others)} of {len(others)}")


def lever(title, cell):
    """skb->priority of 256 + 6, set by tc on the radio, against a packet's DSCP of best effort."""
    shell("tc", "qdisc", "add", "dev", cell.interface, "clsact")
    shell("tc", "filter", "add", "dev", cell.interface, "egress", "matchall", "action", "skbedit", "priority", "0x106")
    before = len(cell.air.frames)
    for _ in range(20):
        udp(0).sendto(bytes(777), (ADDRESSES["station"], 9))
        time.sleep(0.01)
    time.sleep(1)
    shell("tc", "qdisc", "del", "dev", cell.interface, "clsact")
    tids = collections.Counter(frame["tid"] for frame in cell.air.frames[before:] if frame["bytes"] == 777 + AROUND)
    row("lever", title, "tcx egress, skb->priority 262, DSCP 0", dict(tids))
    assert set(tids) == {6} and tids[6] >= 19, tids


def flow_queues(title, cell):
    """What a controller reads of mac80211's flow queues, beside what `iw` reads of the whole radio. hwsim takes every frame at once, so that nothing
    waits but while the radio is away from its channel. The driver has no AQL: downloads are held as over any radio."""
    program, place = os.environ["LASTHOP"], "/tmp/lasthop.sock"
    phy = "phy#" + re.search(r"wiphy (\d+)", shell("iw", "dev", cell.interface, "info"))[1]

    def told():
        text = subprocess.run([program, "status", "--json", "--socket", place], text=True, capture_output=True).stdout
        return json.loads(text).get("fair_queues") if text else None

    def of_radio():
        return int(re.search(r"Backlog:\s+(\d+) pkts", shell("iw", phy, "get", "txq"))[1])

    # It only looks: the stream is not slowed.
    words = [program, "run", "--dry-run", "--lan", cell.interface, "--socket", place]
    controller = subprocess.Popen(words, stdout=open("/tmp/lasthop.log", "w"), stderr=subprocess.STDOUT)
    stream = None
    try:
        until(60, "the controller knows what waits", lambda: (told() or [{}])[0].get("waits_bytes") == 0)
        stream, looks = Stream(0), []
        # Fewer than the beacons after which a station is gone.
        shell("iw", "dev", cell.interface, "offchannel", "5200", "2500")
        last = time.monotonic() + 4
        while time.monotonic() < last:
            looks.append((told()[0], of_radio()))
        stream.stop()
        stream = None
        assert all(own["state"] == "held" and "AQL" in own["why"] for own, _ in looks), looks[-1]
        most, packets = max(own["waits_bytes"] for own, _ in looks), max(packets for _, packets in looks)
        print(f"flow queues: {title}: in {len(looks)} looks at most {most:,} bytes in the status, {packets} packets in the radio")
        # They are not read at the same time, and the stream goes on.
        assert packets >= 50 and 1 / 3 < most / ((RATE_BYTES + 28) * packets) < 3, looks
        until(20, "nothing waits any more", lambda: told()[0]["waits_bytes"] == 0)
    finally:
        if stream:
            stream.stop()
        controller.terminate()
        controller.wait()


def expanded(table):
    return [name for name, count, _ in table for _ in range(count)]


def retries(title, cell):
    """What is lost on purpose is tried as often as its table says, and counted so."""
    def counters():
        text = shell("iw", "dev", cell.interface, "station", "get", STATION_MAC)
        value = lambda name: int(next(line for line in text.splitlines() if line.strip().startswith(name)).split(":")[1])
        return value("tx retries"), value("tx failed")

    time.sleep(0.5)
    counted, before = counters(), len(cell.air.frames)
    cell.air.ask("snr 1 -20")
    for _ in range(30):
        udp(VOICE).sendto(bytes(500), (ADDRESSES["station"], 9))
        time.sleep(0.03)
    time.sleep(1)
    cell.air.ask("snr 1 30")
    lost = [frame for frame in cell.air.frames[before:] if frame["from"] == 0]
    assert len(lost) >= 25 and not any(frame["acked"] for frame in lost), lost[:3]
    for frame in lost:
        assert frame["tried"] == expanded(frame["table"]), frame
    tries = [len(frame["tried"]) for frame in lost]
    stages = collections.Counter(len(frame["table"]) for frame in lost)
    did = (sum(tries) - len(tries), len(tries))

    def grown():
        now = counters()
        return now[0] - counted[0], now[1] - counted[1]

    until(10, f"the kernel has counted what the air did, {did}", lambda: grown() >= did)
    grew = grown()
    assert grew == did, (grew, did)
    row("retries", title, len(lost), f"{min(tries)} to {max(tries)}", dict(sorted(stages.items())), f"{grew[0]} / {grew[1]}", f"{sum(tries) - len(tries)} / {len(tries)}")
    print("a table:", lost[0]["table"], lost[-1]["table"])


def prefixes(title, cell):
    """Of all frames: tries are the beginning of the table, and end with the one that arrived."""
    wrong = [f for f in cell.air.frames if f["tried"] != expanded(f["table"])[: len(f["tried"])]]
    given_up = [f for f in cell.air.frames if not f["acked"] and len(f["tried"]) != len(expanded(f["table"]))]
    # Of an aggregate the first MPDU's table decides for all.
    alone = [f for f in wrong + given_up if f["tid"] in (6, 7)]
    assert not alone, alone[:3]
    row("tables", title, len(cell.air.frames), len(wrong), len(given_up))


def chain(frame):
    """The rates that minstrel_ht goes through at the moment; None: the frame tries one out, by one try in front of the others."""
    return None if frame["table"][0][1] == 1 else [name for name, *_ in frame["table"]]


def downlink(cell, before, tids):
    return [frame for frame in cell.air.frames[before:] if frame["from"] == 0 and frame["tid"] in tids]


def excursions(frames, worth, best):
    """Shows what went before a first rate that is worth less than seven tenths of the best."""
    shown, last = 0, None
    for number, frame in enumerate(frames):
        own = chain(frame)
        if own and last and worth.get(last, 0.0) > 0.9 * best and worth.get(own[0], 0.0) < 0.7 * best and shown < 2:
            shown += 1
            print(f"   from {last} to {own[0]}:")
            for each in frames[max(0, number - 25):number + 2]:
                print("     ", each["at_us"], each["acked"], [(name, count) for name, count, _ in each["table"]], collections.Counter(each["tried"]))
        if own:
            last = own[0]


def waits(cell, before, frames, last):
    """Fewer frames than these have been sent since, and there is time left."""
    return len(cell.air.frames) < before + frames and time.monotonic() < last


def rates(title, cell, ratios):
    """minstrel_ht's first rate, which every frame's table says, beside ours at each ratio."""
    voice, total = Stream(VOICE), collections.Counter()
    counts = {"kernel": collections.defaultdict(set), "ours": collections.defaultdict(set)}
    try:
        for snr in ratios:
            cell.air.ask(f"snr 1 {snr}")
            before, last = len(cell.air.frames), time.monotonic() + SETTLE[1]
            while waits(cell, before, SETTLE[0], last):
                time.sleep(LOOK_S)
            settled = len(cell.air.frames) - before
            if settled < LEAST:
                print(f"   {snr} dB: only {settled} frames in {SETTLE[1]} s: nothing to compare")
                continue
            before, started = len(cell.air.frames), time.monotonic()
            last = started + WATCH[1]
            seen = {"kernel": collections.Counter(), "kinds": collections.Counter(), "share": collections.Counter()}
            expected, ours = [], collections.defaultdict(list)
            while waits(cell, before, WATCH[0], last):
                expected.append(cell.expects())
                answer = cell.air.ask("rates 1")
                for name, count, rts in (stage for own in answer.pop("chains") for stage in own):
                    counts["ours"][name, rts].add(count)
                for scheme, names in answer.items():
                    seen[scheme].update(names)
                    ours[scheme].append(names)
                time.sleep(LOOK_S)
            frames, lasted = downlink(cell, before, (6, 7)), time.monotonic() - started
            chains = [own for own in map(chain, frames) if own]
            seen["kernel"].update(own[0] for own in chains)
            worth = dict(cell.air.ask(f"worth 1 {RATE_BYTES + AROUND}")["worth"])
            ideal = max(worth, key=worth.get)
            mean = {who: sum(worth.get(name, 0.0) * n for name, n in names.items()) / names.total() / worth[ideal] for who, names in seen.items()}
            mode = {who: names.most_common(1)[0] for who, names in seen.items()}
            spread = {who: sorted(sum(worth.get(name, 0.0) for name in own) / len(own) / worth[ideal] for own in zip(*looks)) for who, looks in ours.items()}
            spread = {who: f" ({own[0]:.3f}-{own[-1]:.3f})" for who, own in spread.items()}
            text = [f"{mode[who][0]} ({mode[who][1] / names.total():.0%}) | {mean[who]:.3f}{spread.get(who, '')}" for who, names in seen.items()]
            excursions(frames, worth, worth[ideal])
            print("   first rates:", {who: names.most_common(4) for who, names in seen.items()})
            for name, count, rts in (stage for frame in frames if chain(frame) for stage in frame["table"]):
                counts["kernel"][name, rts].add(count)
            true = worth.get(mode["kernel"][0]) or float("nan")
            believed = [pps / true for pps in expected if pps]
            believed = f"{sum(believed) / len(believed):.2f}" if believed else "-"
            probes = 1 - len(chains) / len(frames)
            row("minstrel", title, snr, ideal, *text, believed, f"{len(frames) / lasted:.0f}", f"{probes * len(frames) / lasted:.0f}")
            total.update(mean, cells=1, same=int(mode["kernel"][0] == mode["kinds"][0]))
    finally:
        voice.stop()
    both = counts["kernel"].keys() & counts["ours"].keys()
    differ = {key for key in both if max(counts["kernel"][key]) != max(counts["ours"][key])}
    row("stages", title, len(both), len(differ), "; ".join(f"{key}: {counts['kernel'][key]}, ours {counts['ours'][key]}" for key in sorted(differ)) or "none")
    return total


def deaf(title, cell):
    """Within a block ack agreement minstrel_ht hears of nothing: from 30 to 8 dB its table stays; of voice it learns at once."""
    def ends(tos, tids, seconds):
        before, stream = len(cell.air.frames), Stream(tos)
        time.sleep(seconds)
        stream.stop()
        frames = downlink(cell, before, tids)
        # Outcomes of voice that were on their way are heard by then.
        late = [chain(frame)[0] for frame in frames[len(frames) // 2:] if chain(frame)]
        return collections.Counter(late), sum(frame["acked"] for frame in frames) / len(frames)

    cell.air.ask("snr 1 30")
    high, _ = ends(VOICE, (6, 7), 6)
    cell.air.ask("snr 1 8")
    stays, acked = ends(0, (0,), 4)
    learns, acked_voice = ends(VOICE, (6, 7), 8)
    cell.air.ask("snr 1 30")
    first = [rates.most_common(1)[0][0] for rates in (high, stays, learns)]
    row("deaf", title, first[0], f"{first[1]} ({acked:.0%} arrived)", f"{first[2]} ({acked_voice:.0%} arrived)")
    assert len(stays) == 1 and acked < 0.2 < acked_voice and first[1] != first[2], (high, stays, learns, acked, acked_voice)


def counters(title, cell):
    """Of the air, and of what the driver refused: frames that its queue had dropped, or for a radio that is away."""
    told = cell.air.ask("counters")
    row("counters", title, *(f"{name} {told[name]}" for name in COUNTERS))
    assert told["overruns"] == told["malformed"] == told["overflowed"] == 0, told


def run(program, seed):
    draw = random.Random(seed)
    sums, failed = collections.Counter(), 0
    for number, (title, parameters, ratios) in enumerate(CELLS):
        low, high = (3, 28) if parameters["standard"] == "n" else (6, 34)
        drawn = sorted(round(draw.uniform(low, high) * 4) / 4 for _ in range(ratios))
        draw.shuffle(drawn)
        cell = Cell(program, parameters, seed)
        try:
            ours = cell.air.ask("classes")
            print(f"-- {title}: connected")
            checks = [lambda: traffic(title, cell)]
            if number == 0:
                checks += [lambda: marks(title, cell, ours), lambda: lever(title, cell), lambda: flow_queues(title, cell)]
            checks += [lambda: agreements(title, cell, ours), lambda: sums.update(rates(title, cell, drawn))]
            if number == 0:
                checks += [lambda: retries(title, cell), lambda: deaf(title, cell)]
            checks += [lambda: prefixes(title, cell), lambda: counters(title, cell)]
            for check in checks:
                try:
                    check()
                except AssertionError:
                    failed += 1
                    traceback.print_exc(file=sys.stdout)
        except BaseException:
            cell.complain()
            raise
        finally:
            cell.close()
        until(20, "the radios are gone", lambda: not glob.glob("/sys/class/ieee80211/air*"))
    n = sums["cells"]
    assert n, "the guest was too slow to compare anything"
    print("mean worths:", n, sums["same"], {who: round(sums[who] / n, 3) for who in ("kernel", "kinds", "share")})
    assert not failed, f"{failed} checks failed"
    assert n >= sum(ratios for *_, ratios in CELLS) / 2, f"{n} ratios are too few: the guest was too slow"
    assert sums["kernel"] / n > 0.8 and abs(sums["kernel"] - sums["kinds"]) / n < 0.1, sums


def monitor(seconds):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    wire.bind(("hwsim0", 0))
    print("ready", flush=True)
    found, last = collections.defaultdict(set), time.monotonic() + seconds
    while (left := last - time.monotonic()) > 0:
        wire.settimeout(left)
        try:
            packet = wire.recv(4096)
        except TimeoutError:
            break
        frame = packet[struct.unpack_from("<H", packet, 2)[0]:]
        # QoS data, encrypted, from the access point.
        if len(frame) > 26 and frame[0] == 0x88 and frame[1] & 0x43 == 0x42:
            found[len(frame)].add(frame[24] & 15)
    print(json.dumps({length: sorted(tids) for length, tids in found.items()}))


def sink():
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    wire.bind(("", 9))
    print("ready", flush=True)
    while True:
        wire.recv(2048)


if sys.argv[1] == "monitor":
    monitor(float(sys.argv[2]))
elif sys.argv[1] == "sink":
    sink()
else:
    run(sys.argv[2], int(sys.argv[3]))
