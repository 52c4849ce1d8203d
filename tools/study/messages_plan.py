"""What the study of paper 003 plays: sizes, tunings and the steps of each part, all of them plain lists.

A step is what the program in one host does once: see messages_host.py. Sizes and times are the paper's where it has any.
"""

DELAYS = "scenarios/papers/messages-delays.toml"
BOUND_HOME = "scenarios/papers/messages.toml"
WAYS = ("send", "fetch")
# Table 2: recordings of 30 to 600 s.
SIZES_KB = (235, 469, 938, 2344, 4688)
# Figure 2 goes from 512 to 7,128 B and names no other point.
PACKETS = (512, 1024, 2048, 3072, 4096, 5120, 6144, 7128)
PACKETS_KB = 469
ACK_PACKETS = (512, 4096, 65536)
# Figures 4 and 5: 512 to 10,240 B, files of 800 to 4,000 KB.
BUFFERS = (512, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 9216, 10240)
ACCESS_KB = (800, 1600, 2400, 3200, 4000)
# Table 4 names no file. As printed its upload takes 2,502 ms: 235 packets of 10 ms each, and little else.
TABLE_4_KB = 938
# 500 Mbit/s and 20 ms of round trip in place of the air, and no slow storage.
PATH = {
    "wifi": "none",
    "wireless_link.rate": "500Mbit/s",
    "wireless_link.delay": "10ms",
    "wireless_link.error_rate": "0",
    "wireless_link.station_rate": "10Gbit/s",
    "wireless_link.station_delay": "0ms",
    "server.W.rate": "10Gbit/s",
    "station.PDA.storage": "none",
}
PATH_KB = 512 << 10
PATH_IPERF_S = 9
GIGABYTES_4_KB = 4 << 20


def both(sender=None, receiver=None):
    """A tuning of both directions: keys of the end that sends and of the end that receives, as `--set` takes them."""
    ends = (("sender", sender or {}), ("receiver", receiver or {}))
    return [f"{way}.{end}.{key}={value}" for way in WAYS for end, keys in ends for key, value in keys.items()]


def packet(size, **sender):
    """Both ends, both ways, with this application packet; more keys are the sender's."""
    return both({"packet": f"{size}B", **sender}, {"packet": f"{size}B"})


# Scenario (a), table 4 as printed.
TABLE_4 = both(
    {"packet": "4096B", "delay": "1ms", "buffer": "16384B"}, {"packet": "4096B", "delay": "10ms", "buffer": "8192B"}
)
# Its "after": 10 ms at both ends on the way up, no delay on the way down; nothing else is said to have changed.
TABLE_4_AFTER = [
    *both({"packet": "4096B", "buffer": "16384B"}, {"packet": "4096B", "buffer": "8192B"}),
    "send.sender.delay=10ms",
    "send.receiver.delay=10ms",
]
# Table 4 before, had the device received a third of a packet at a time, about a segment, and slept after each.
THIRDS = [*TABLE_4, "fetch.receiver.packet=1366B"]
THIRDS_AFTER = [*THIRDS, "fetch.sender.delay=0ms", "fetch.receiver.delay=0ms"]
# The paper's own device, as its download after tuning has it: 938 KB in 4,622 ms; what a call costs included, or besides.
OWN_DEVICES = {
    "calls included": '{ write = "208kB/s", read = "416kB/s", operation = "0s" }',
    "2.5 ms a call besides": '{ write = "208kB/s", read = "416kB/s", operation = "2500us" }',
}
# Scenario (b): the kernel's buffers, no delays.
BOUND_BYTES = 3072
BOUND = packet(BOUND_BYTES)
# What each remedy alone does for (b), downloads: changes of BOUND.
REMEDIES = {
    "as it is": [],
    "packet 512 B": packet(512),
    "packet 8,192 B": packet(8192),
    "packet 16 KiB": packet(16384),
    "packet 32 KiB": packet(32768),
    "packet 64 KiB": packet(65536),
    "receive buffer 8 KiB": ["fetch.receiver.buffer=8KiB"],
    "receive buffer 64 KiB": ["fetch.receiver.buffer=64KiB"],
    "receive buffer 256 KiB": ["fetch.receiver.buffer=256KiB"],
    "send buffer 16 KiB": ["fetch.sender.buffer=16KiB"],
    "send buffer 256 KiB": ["fetch.sender.buffer=256KiB"],
    "sender sleeps 8 ms": ["fetch.sender.delay=8ms"],
    "receiver sleeps 1 ms": ["fetch.receiver.delay=1ms"],
    "paced at 350 kB/s": ["fetch.sender.pacing=350kB/s"],
    "packet 16 KiB, paced at 400 kB/s": [*packet(16384), "fetch.sender.pacing=400kB/s"],
}
# Storage rates at which scenario (a) is played besides its own, kB/s, 520 bytes' worth of operation each. 208: see the scenario.
RATES = (208, 420, 500, 600, 700, 800, 1000)


def storage(kilobytes):
    """A device's storage that writes so many kB/s."""
    operation_us = round(520 / kilobytes * 1000)
    return f'{{ write = "{kilobytes}kB/s", read = "{2 * kilobytes}kB/s", operation = "{operation_us}us" }}'


def transfers(runs, sizes, tunings, ways=WAYS):
    """Steps: per run, size and tuning one transfer each way, so that what is compared stands together in time.

    `tunings`: {name: list of `--set`, or None for the device's own profile}.
    """
    return [
        {"do": way, "kb": kb, "tuning": name, **({} if sets is None else {"sets": sets}), "run": run}
        for run in range(runs)
        for kb in sizes
        for name, sets in tunings.items()
        for way in ways
    ]


def accesses(runs, devices):
    """{device: steps}: per run, buffer and size a file written and read back; all devices end at about the same time."""
    pairs = sorted(
        ((kb, buffer) for kb in ACCESS_KB for buffer in BUFFERS), key=lambda pair: pair[0] / pair[1] + pair[0] / 600
    )
    hands = {f"PDA.{i}": [] for i in range(1, devices + 1)}
    load = dict.fromkeys(hands, 0.0)
    for kb, buffer in reversed(pairs):
        least = min(load, key=load.get)
        load[least] += kb / buffer + kb / 600
        hands[least].append((kb, buffer))
    return {
        name: [
            {"do": do, "kb": kb, "buffer": buffer, "run": run}
            for run in range(runs)
            for kb, buffer in hands[name]
            for do in ("write", "read")
        ]
        for name in hands
    }
