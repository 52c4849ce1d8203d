"""The n-th system call of each thread of the controller fails, or does less than was asked: strace puts that in.

What has to hold after each: it refuses to start, in words, with an exit code that is not 0, and nothing of it is left; or it goes on,
downloads do, too, and it ends in order when it is told to. It never panics, hangs or stops a download.
"""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import world

# What each call says when it fails, of what the kernel may say; calls that are not here cannot fail, or nobody could tell
# that they did.
ERRORS = {
    "EMFILE": "accept4 dup3 epoll_create1 memfd_create openat pipe2 socket",
    "ENOMEM": "bpf epoll_ctl epoll_wait getsockopt landlock_add_rule landlock_create_ruleset mlock mmap poll ppoll setsockopt",
    "ENOBUFS": "bind connect listen recvfrom recvmsg sendmmsg sendmsg sendto",
    "EIO": "flock fstat ftruncate getdents64 ioctl newfstatat pread64 read readlink statx write",
    "ENOSPC": "mkdir rename",
    "EPERM": "capget capset chmod faccessat2 fchmod landlock_restrict_self prctl prlimit64 sched_getaffinity sched_setscheduler",
    "EACCES": "rmdir unlink unlinkat",
    "EAGAIN": "clone3",
}
ERROR_OF = {call: error for error, calls in ERRORS.items() for call in calls.split()}
# These may also do nothing and say so: no bytes of the many that were asked for.
SHORT = ("pread64", "read", "recvfrom", "recvmsg", "sendmmsg", "sendto", "write")
# Without memory it may end as kill -9 ends it: neither the loader nor the start of a thread survives that. What a kill leaves
# is left then.
MEMORY_CALLS = ("mmap",)
# A file stays that nobody was let remove, or of which nobody could find out whose it is.
REMOVES = ("flock", "newfstatat", "rmdir", "statx", "unlink", "unlinkat")
# What it says where filters stay because the kernel refuses every request; they let all pass once its heartbeat is old.
NOT_OFF, FILTERS = "could not be taken off", ("filter of", "qdisc clsact")
# So many of one kind, and more, come with packets or intervals, and each would say the same: then the next is twice as late.
EACH = 200
WORDS = ["--lan", "lan0", "--wan", "wan0", "--capacity", "19Mbit/s", "--socket", str(world.SOCKET)]
# What a run may last: until it is at work, while it is, and until it has ended. The verifier takes its time, above all when
# libbpf asks it once more, for its reasons.
START, WORK, END = 30.0, 1.0, 10.0
# Beside what a run takes in which nothing fails: so much of its memory; so many of its calls, and as many more, are a loop.
MEMORY, SPINS, MORE = 1.5, 10, 1000


class Run:
    """One run of the controller below strace, from its start until it ended."""

    def __init__(self, folder, binary, more, inject):
        self.said, self.traced = folder / "said", folder / "calls"
        words = ["strace", "-f", "-qq", "-o", str(self.traced), *inject, str(binary), "run", *WORDS, *more]
        with self.said.open("wb") as file:
            self.strace = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, preexec_fn=world.end_with_parent
            )
        self.pid = None

    def controller(self):
        """Its process, which strace started."""
        if self.pid is None:
            path = Path(f"/proc/{self.strace.pid}/task/{self.strace.pid}/children")
            children = path.read_text().split() if path.exists() else []
            self.pid = int(children[0]) if children else None
        return self.pid

    def at_work(self):
        """Waits until it serves its status; None where it ended before, or never does."""
        begun = time.monotonic()
        while self.strace.poll() is None and time.monotonic() - begun < START:
            if status := world.status():
                return status
            # Without a status it may work all the same.
            if time.monotonic() - begun > 3 and "controlling" in self.said.read_text():
                return {}
            time.sleep(0.02)
        return None

    def memory(self):
        """The most that it has had, kB."""
        try:
            text = Path(f"/proc/{self.controller()}/status").read_text()
        except OSError:
            return 0
        peak = re.search(r"VmHWM:\s+(\d+)", text)
        return int(peak[1]) if peak else 0

    def end(self):
        """Tells it to end, waits, and says how it ended; None where it does not."""
        if self.strace.poll() is None and self.controller():
            os.kill(self.controller(), signal.SIGTERM)
        return self.wait()

    def wait(self):
        try:
            return self.strace.wait(END)
        except subprocess.TimeoutExpired:
            if self.controller():
                os.kill(self.controller(), signal.SIGKILL)
            self.strace.wait()
            return None


def counted(folder, binary, more):
    """Of a run in which nothing fails: how many calls of each kind that can fail the busiest thread makes, and how many of them until
    it is at work; its memory, kB."""
    run = Run(folder, binary, more, ["-e", "trace=" + ",".join(f"?{call}" for call in ERROR_OF)])
    if run.at_work() is None:
        run.wait()
        raise world.Broken(f"it does not start: {run.said.read_text()}")
    early = busiest(run.traced)
    download = world.Download()
    time.sleep(WORK)
    world.status()
    memory = run.memory()
    run.end()
    download.close()
    return busiest(run.traced), early, memory


def busiest(file):
    """Of each call the number that the thread which calls it most has made."""
    each = {}
    for line in file.read_text().splitlines():
        if match := re.match(r"(\d+)\s+(\w+)\(", line):
            each.setdefault(match[2], {}).setdefault(match[1], 0)
            each[match[2]][match[1]] += 1
    return {call: max(each[call].values()) for call in each if call in ERROR_OF}


def cases(counts, early):
    """Each call that is to fail: its name, what it says, which one; and all of one kind from the moment at which it is at work."""
    for call, most in sorted(counts.items()):
        if most > early.get(call, 0):
            yield call, f"error={ERROR_OF[call]}", f"{early.get(call, 0) + 1}+"
        outcomes = [f"error={ERROR_OF[call]}"] + ["retval=0"] * (call in SHORT)
        for outcome in outcomes:
            n = 1
            while n <= most:
                yield call, outcome, n
                n += 1 if n < EACH else n


def play(folder, binary, more, case, usual):
    """Plays one case beside a download; what is wrong, as a list of words, and how it ended. `usual` is what is usual: how often this
    is called, and the memory."""
    call, outcome, n = case
    before, held = world.traces(), set()
    older = world.Download()
    inject = ["--seccomp-bpf", "-e", f"trace={call}", "-e", f"inject={call}:{outcome}:when={n}"]
    run = Run(folder, binary, more, inject)
    status, wrong = run.at_work(), []
    downloads = [older]
    if run.strace.poll() is None:
        if status is None:
            wrong.append("it neither works nor ends")
        downloads.append(world.Download())
        last = time.monotonic() + WORK
        while time.monotonic() < last and run.strace.poll() is None:
            time.sleep(0.02)
        status, held = world.status() or status, world.held_by(run.controller())
        if (memory := run.memory()) > MEMORY * usual[1]:
            wrong.append(f"it took {memory} kB of memory instead of {usual[1]}")
    by_itself = run.strace.poll() is not None
    code = run.wait() if by_itself else run.end()
    said = run.said.read_text()
    made = busiest(run.traced).get(call, 0)
    if made > SPINS * usual[0] + MORE:
        wrong.append(f"it spins: {made} calls instead of {usual[0]}")
    is_killed = call in MEMORY_CALLS and code in (-signal.SIGABRT, -signal.SIGSEGV)
    wrong += [] if is_killed else ended_wrongly(code, by_itself, said)
    for download in downloads:
        if download.moves_on() is None or download.silence() > world.PATIENCE or download.error:
            wrong.append(f"a download stopped: {download.error or 'no bytes came'}")
        download.close()
    left_rightly = ("/run/lasthop",) * (is_killed or call in REMOVES) + FILTERS * (NOT_OFF in said)
    wrong += [f"left behind: {trace}" for trace in left(before, held, left_rightly)]
    failures = (status or {}).get("controller", {}).get("failures", 0)
    return wrong, {"code": code, "by_itself": by_itself, "failures": failures, "said": said}


def ended_wrongly(code, by_itself, said):
    if "panicked" in said:
        yield "it panicked"
    if code is None:
        yield "it hangs"
    elif code < 0 or code > 128:
        yield f"a signal ended it: {code}"
    elif by_itself and code == 0:
        yield "it ended by itself, content"
    elif code != 0 and not said.strip():
        yield "it ended without a word"


def left(before, held, but=()):
    """What is there that was not before, and programs that were `held`, once the kernel has had the time to remove them; not
    those that begin with one of `but`."""
    last = time.monotonic() + 5
    while True:
        traces = [trace for trace in world.traces() if trace not in before and not trace.startswith(but)]
        # Filters hold their programs.
        loaded = set() if FILTERS[0] in but else world.programs() & held
        if not traces and not loaded:
            return []
        if time.monotonic() > last:
            return traces + [f"BPF programs {sorted(loaded)}"] * bool(loaded)
        time.sleep(0.1)


def sweep():
    """Takes off what a case left, so that the next is told apart from it."""
    for line in ("rm -rf /run/lasthop", "tc qdisc del dev lan0 clsact", "ip link del lasthop0"):
        subprocess.run(line.split(), check=False, capture_output=True)
