"""The priority of programs that time packets inside a home."""

import os


def go_first():
    """As the emulator's own players: what else the machine does is no part of a ping."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    except PermissionError:
        pass
