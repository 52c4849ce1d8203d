"""The analysis of the Snoop paper (001), its equations 1 to 7. Rates in bit/s, sizes in bytes, times in s, losses as shares.

`p_a`, `p_b`: lost in queues of nodes A and B; `p_w`: on the wireless link; `p_s`: what the sender sees.
"""

import math

C0 = math.sqrt(3 / 2)


def vegas_difference(window, rtt, rtt_min):
    """(1): packets of the window that wait in queues. Vegas grows below 1 and shrinks above 3."""
    return (window / rtt_min - window / rtt) * rtt_min


def tfrc_rate(size, rtt, rto, p):
    """(2): the most that a friendly flow sends; `p`: its loss event rate, above 0."""
    waiting = rto * 3 * math.sqrt(3 * p / 8) * p * (1 + 32 * p**2)
    return 8 * size / (rtt * math.sqrt(2 * p / 3) + waiting)


def tcp_rate(mss, rtt, p):
    """(3): what TCP sends where duplicate ACKs alone tell it of losses; without a bound when there are none."""
    return math.inf if p == 0 else C0 * 8 * mss / (rtt * math.sqrt(p))


def path_loss(p_a, p_b, p_w):
    """(4), and (6) with `p_w` = 0, what perfect local recovery leaves."""
    return p_a + (1 - p_a) * p_b + (1 - p_a) * (1 - p_b) * p_w


def underused(rate, p_s, bandwidth, p_w):
    """(5): whether one flow of `rate` leaves room on a wireless link of `bandwidth`."""
    return rate * (1 - p_s) < bandwidth * (1 - p_w)


def delivered(mss, rtt, p_s, bandwidth, p_w):
    """What (3) and (5) give together: the rate that arrives, at most what the link has."""
    return min(tcp_rate(mss, rtt, p_s) * (1 - p_s), bandwidth * (1 - p_w))


def end_to_end_delay(hops, encode=0.0, packetise=0.0, playback=0.0):
    """(7); `hops`: (transmit, queue, propagate) of each."""
    return encode + packetise + math.fsum(math.fsum(hop) for hop in hops) + playback
