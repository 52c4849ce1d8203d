"""Loads pages in headless Chromium and writes what its own navigation timing says. Runs inside a station of the home.

    browser.py FOLDER LOADS SECONDS FIRST_S URL..

Every page LOADS times by turns, the first after FIRST_S seconds, each to its end; after SECONDS, which should never be
reached, none begins any more. FOLDER gets `loads.jsonl`, one line per load, `NAME.png` of the first load of each page, and at the end `watch.json`, how late
sleeps ended.

The browser is spoken to over DevTools by two pipes (--remote-debugging-pipe), so it needs no port and no library here.
Each load has a browser context of its own: no cache, no cookie and no connection of an earlier one.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

# Most time for one load; longer counts as failed.
PATIENCE_S = 90.0
FLAGS = [
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--mute-audio",
    "--window-size=800,600",
]
FIGURES = """JSON.stringify({
  navigation: performance.getEntriesByType('navigation')[0].toJSON(),
  resources: performance.getEntriesByType('resource').map(r => [r.encodedBodySize, r.nextHopProtocol, r.responseStatus])
})"""


class Closed(Exception):
    """The browser ended or said nothing in time."""


class Browser:
    """A headless Chromium with a profile of its own, below `folder`."""

    def __init__(self, folder):
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if program is None:
            raise Closed("there is no chromium")
        self.profile = folder / "profile"
        shutil.rmtree(self.profile, ignore_errors=True)
        flags = FLAGS + [f"--user-data-dir={self.profile}", "--remote-debugging-pipe"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        ours, theirs = os.pipe(), os.pipe()
        self.log = (folder / "chromium.log").open("wb")

        def become():
            # The browser reads commands from 3 and answers on 4. Copied upwards first, lest one overwrite the other.
            reads, writes = os.dup2(theirs[0], 30), os.dup2(ours[1], 31)
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        self.process = subprocess.Popen(
            [program, *flags, "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            preexec_fn=become,
            close_fds=False,
            env={**os.environ, "HOME": str(folder)},
        )
        os.close(theirs[0])
        os.close(ours[1])
        self.reads, self.writes = ours[0], theirs[1]
        self.pending, self.number, self.events = b"", 0, []

    def call(self, method, session=None, **params):
        """The result of one command; events that come meanwhile are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 30
        while True:
            answer = self.next(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Closed(f"{method}: {answer['error'].get('message')}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method, session, deadline):
        """The first event called `method`."""
        while True:
            for event in self.events:
                if event.get("method") == method and event.get("sessionId") == session:
                    self.events.clear()
                    return
            self.events.clear()
            self.events.append(self.next(deadline))

    def next(self, deadline):
        while b"\0" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.reads], [], [], left)[0]:
                raise Closed("nothing came in time")
            more = os.read(self.reads, 1 << 20)
            if not more:
                raise Closed("the browser ended")
            self.pending += more
        message, self.pending = self.pending.split(b"\0", 1)
        return json.loads(message)

    def load(self, url, picture=None):
        """Loads `url` with nothing of an earlier load, and returns its figures."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        try:
            target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
            session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            self.call("Page.enable", session)
            self.events.clear()
            self.call("Page.navigate", session, url=url)
            self.wait_for("Page.loadEventFired", session, time.monotonic() + PATIENCE_S)
            while True:
                # loadEventEnd is written when the last handler of the event has run.
                value = self.call("Runtime.evaluate", session, expression=FIGURES)["result"]["value"]
                figures = json.loads(value)
                if figures["navigation"]["loadEventEnd"] > 0:
                    break
                time.sleep(0.02)
            if picture is not None:
                shot = self.call("Page.captureScreenshot", session, format="png")
                picture.write_bytes(base64.b64decode(shot["data"]))
            return summary(figures)
        finally:
            self.call("Target.disposeBrowserContext", browserContextId=context)

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (Closed, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def summary(figures):
    """Response time in s, and what was loaded, so that a page that lacks something shows."""
    navigation, resources = figures["navigation"], figures["resources"]
    return {
        "response_s": navigation["loadEventEnd"] / 1e3,
        "first_byte_s": navigation["responseStart"] / 1e3,
        "objects": 1 + len(resources),
        "bytes": navigation["encodedBodySize"] + sum(size for size, _, _ in resources),
        "protocols": sorted({navigation["nextHopProtocol"], *(protocol for _, protocol, _ in resources)}),
        "failed": sum(1 for _, _, status in resources if status != 200),
    }


class Watch(threading.Thread):
    """How late this process's own sleeps of 10 ms end: what else the machine does is no part of a response time."""

    def __init__(self):
        super().__init__(daemon=True)
        self.late_ms = []

    def run(self):
        while True:
            begun = time.monotonic()
            time.sleep(0.01)
            self.late_ms.append((time.monotonic() - begun) * 1e3 - 10)

    def p99_ms(self):
        ordered = sorted(self.late_ms)
        return ordered[len(ordered) * 99 // 100] if ordered else 0.0


def main():
    folder, loads, seconds, first = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    urls = sys.argv[5:]
    begun = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    browser = Browser(folder)
    time.sleep(max(0.0, first - (time.monotonic() - begun)))
    watch = Watch()
    watch.start()
    with (folder / "loads.jsonl").open("w", buffering=1) as out:
        for turn in range(loads):
            for url in urls:
                name = url.rstrip("/").rsplit("/", 1)[-1]
                at = time.monotonic() - begun
                if at > seconds:
                    continue
                line = {"page": name, "turn": turn, "at_s": round(at, 3)}
                try:
                    picture = folder / f"{name}.png" if turn == 0 else None
                    line |= browser.load(url, picture)
                except Closed as error:
                    line["error"] = str(error)
                out.write(json.dumps(line) + "\n")
    browser.close()
    (folder / "watch.json").write_text(json.dumps({"late_p99_ms": watch.p99_ms()}))


if __name__ == "__main__":
    main()
