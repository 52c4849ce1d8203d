"""The controller is killed at random moments, also while it starts, and started again beside what the crash left."""

import os
import signal
import subprocess
import time

import calls
import world

# Until a controller has to be at work, seconds.
START = 15.0
# What it says where the kernel cannot have a datapath.
LACKS = "has no queue disciplines in BPF"


class Controller:
    def __init__(self, folder, binary, more):
        self.log = folder / "said"
        words = [str(binary), "run", *calls.WORDS, *more]
        with self.log.open("wb") as file:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, preexec_fn=world.end_with_parent
            )
        self.begun = time.monotonic()

    def is_at_work(self):
        """Waits until it is; how long that took, or None."""
        while self.process.poll() is None and time.monotonic() - self.begun < START:
            status = world.status()
            if status and status["pid"] == self.process.pid and status["controller"]["intervals"] > 0:
                return time.monotonic() - self.begun
            time.sleep(0.02)
        return None

    def end(self, by):
        os.kill(self.process.pid, by)
        return self.process.wait()


def first_start(folder, binary, more):
    """How long a start takes, or None, and what was said."""
    first = Controller(folder, binary, more)
    took = first.is_at_work()
    if first.process.poll() is None:
        first.end(signal.SIGTERM)
    return took, first.log.read_text().strip()


def play(folder, binary, more, rounds, random, say):
    """Kills it `rounds` times; what did not hold."""
    before, held = world.traces(), set()
    usual, said = first_start(folder, binary, more)
    if usual is None:
        if LACKS not in said:
            return [f"it does not start: {said}"]
        say(f"SKIPPED: {said.splitlines()[-1]}")
        return []
    older, wrong = world.Download(), []
    silences, resumed, young, most = [], [], 0, 0
    for number in range(rounds):
        controller, downloads = Controller(folder, binary, more), [older]
        # Every other one has to get to work beside what the one before left, and dies with a window held from its beginning.
        if number % 2 == 0:
            if controller.is_at_work() is None:
                wrong.append(f"round {number}: it does not start again: {controller.log.read_text()}")
            downloads.append(world.Download())
        time.sleep(random.uniform(0.0, 2 * usual))
        young += "controlling" not in controller.log.read_text()
        if controller.process.poll() is not None:
            wrong.append(f"round {number}: it ended by itself: {controller.log.read_text()}")
            continue
        held |= world.held_by(controller.process.pid)
        for download in downloads:
            download.silence()
        controller.end(signal.SIGKILL)
        took = [download.moves_on() for download in downloads]
        if None in took or any(download.error for download in downloads):
            wrong.append(f"round {number}: a download stands still after the kill")
        resumed += [each for each in took if each is not None]
        silences += [download.silence() for download in downloads]
        for download in downloads[1:]:
            download.close()
        most = max(most, sum(trace not in before for trace in world.traces()))
    wrong += ended_in_order(folder, binary, more, (before, held))
    older.close()
    if resumed:
        say(
            f"{rounds} kills, {young} of them before it was at work; 50 kB came {1e3 * max(resumed):.0f} ms after one at the"
            f" latest, the longest silence was {1e3 * max(silences):.0f} ms; a crash left {most} things at most"
        )
    return wrong


def ended_in_order(folder, binary, more, known):
    """The last one ends in order, and takes with it what all before it left."""
    last = Controller(folder, binary, more)
    if last.is_at_work() is None:
        last.process.kill()
        last.process.wait()
        return [f"the last one does not start: {last.log.read_text()}"]
    last.end(signal.SIGTERM)
    return [f"left behind by all of them: {trace}" for trace in calls.left(*known)]
