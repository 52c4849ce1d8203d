"""Saturation throughput of DCF by Bianchi (2000), basic access, unlimited attempts.

    tau = 2 (1 - 2p) / ((1 - 2p)(W + 1) + p W (1 - (2p)^m)),    p = 1 - (1 - tau)^(n - 1)
    S = P_s P_tr 8 L / ((1 - P_tr) slot + P_tr P_s T_s + P_tr (1 - P_s) T_c),    T_c = data + EIFS

T_c waits for EIFS from the lowest rate, the convention of `wifi.after_collision = "eifs"`.
"""

import math
from dataclasses import dataclass

IP_BYTES, OVERHEAD_BYTES = 1500, 36  # 24 MAC header, 4 FCS, 8 LLC/SNAP


@dataclass(frozen=True)
class Timing:
    """Microseconds."""

    slot: float
    window: int  # CWmin + 1
    stages: int
    data: float
    ack: float
    eifs_ack: float  # the ACK that EIFS waits for, at the lowest rate

    @property
    def difs(self):
        return 10 + 2 * self.slot

    def success(self):
        return self.data + 10 + self.ack + self.difs

    def collision(self):
        return self.data + 10 + self.eifs_ack + self.difs


def dsss(size, mbps):
    return 192 + 8 * size / mbps


def ofdm(size, mbps):
    return 20 + 4 * math.ceil((22 + 8 * size) / (4 * mbps)) + 6


B = Timing(20, 32, 5, dsss(IP_BYTES + OVERHEAD_BYTES, 11), dsss(14, 1), dsss(14, 1))
G = Timing(9, 16, 6, ofdm(IP_BYTES + OVERHEAD_BYTES, 54), ofdm(14, 24), ofdm(14, 6))


def bianchi(stations, timing):
    """Saturation throughput, Mbit/s of IP."""
    low, high = 0.0, 1.0 - 1e-9
    for _ in range(100):
        p = (low + high) / 2
        low, high = (p, high) if 1 - (1 - tau(p, timing)) ** (stations - 1) > p else (low, p)
    sends = tau(0.0 if stations == 1 else p, timing)
    busy = 1 - (1 - sends) ** stations
    alone = stations * sends * (1 - sends) ** (stations - 1)
    cycle = (1 - busy) * timing.slot + alone * timing.success() + (busy - alone) * timing.collision()
    return alone * 8 * IP_BYTES / cycle


def tau(p, timing):
    """Probability that a station sends in a slot."""
    w, m = timing.window, timing.stages
    return (
        2 * (1 - 2 * p) / ((1 - 2 * p) * (w + 1) + p * w * (1 - (2 * p) ** m)) if p != 0.5 else 4 / (2 * w + 2 + m * w)
    )
