"""What plain arithmetic says of messages for a slow receiver (paper 003). Sizes in bytes, rates in bytes/s, times in s.

Of 802.11b at 11 Mbit/s with the long preamble, one TCP connection whose segments are acknowledged two by two:

    T(n) = DIFS + CWmin / 2 slots + 192 us + 8 (n + 36) / 11 Mbit/s + SIFS + 192 us + 8 x 14 / 2 Mbit/s
    air = 2 x 1448 / (2 T(1500) + T(52))

A device that reads or writes a packet of P bytes takes `busy = operation + P / storage + delay`; the kernel sends and
receives meanwhile, so that a packet takes `max(busy, P / air)`. Left out: the connection's start, and that neither is even.
"""

DIFS, SIFS, SLOT, PREAMBLE = 50e-6, 10e-6, 20e-6, 192e-6
CW_MIN = 31
HEADERS = 36  # 24 MAC header, 4 FCS, 8 LLC/SNAP
SEGMENT, SEGMENT_IP, ACK_IP = 1448, 1500, 52


def exchange(ip_bytes):
    """One frame of data and its acknowledgment by 802.11, backoff included."""
    waiting = DIFS + CW_MIN / 2 * SLOT
    return waiting + PREAMBLE + 8 * (ip_bytes + HEADERS) / 11e6 + SIFS + PREAMBLE + 8 * 14 / 2e6


def air():
    """Payload that one TCP connection moves."""
    return 2 * SEGMENT / (2 * exchange(SEGMENT_IP) + exchange(ACK_IP))


def busy(packet, rate, operation=0.0, delay=0.0):
    """How long an end is busy with a packet; `rate` None: it has no storage to wait for."""
    return delay + (operation + packet / rate if rate else 0.0)


def message(size, packet, rate, operation=0.0, delay=0.0):
    """How long a message of `size` takes, storage or air, whichever is slower."""
    return size / packet * max(busy(packet, rate, operation, delay), packet / air())


def access(size, packet, rate, operation):
    """How long a file takes in calls of `packet` bytes, the last one shorter."""
    return -(-size // packet) * operation + size / rate


def best_packet(size, rate, operation):
    """Where the wait for the first packet and the calls' own cost are least together: sqrt(size x operation x rate)."""
    return (size * operation * rate) ** 0.5
