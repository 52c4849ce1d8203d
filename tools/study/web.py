"""Case study 1 of the CHAP paper: response times of four pages in a real browser, beside a real download.

    web.py --binary LASTHOP [--short] [--queues fifo,chap] [--loads 5]

Runs as root: it makes the home of scenarios/papers/chap-web.toml with `lasthop emulate`, nginx in the host `web` and
Chromium in the station `browser`. Writes bench-results/study-web-REVISION.{json,md} and a picture of each page.
"""

import json
import shutil
import sys
from pathlib import Path

import common
import pages

SCENARIO = "scenarios/papers/chap-web.toml"
HERE = Path(__file__).resolve().parent
# Mean response time, s, of the paper: section 3.3 and figure 4.
PAPER = {
    "google-news": {"fifo idle": 0.525, "chap idle": 0.514, "fifo download": 3.81, "chap download": 0.574},
    "yahoo": {"fifo idle": 1.43, "chap idle": 1.45, "fifo download": 11.11, "chap download": 1.81},
    "wsj": {"fifo idle": 3.22, "chap idle": 3.36, "fifo download": 14.40, "chap download": 3.8},
    "cnn": {"fifo idle": 3.54, "chap idle": 3.40, "fifo download": 20.18, "chap download": 5.69},
}
# When pages are first loaded, s: the browser is up; and with the download. Of a whole study, and in short.
FIRST_S = {False: (4.0, 12.0), True: (3.0, 5.0)}
# Most seconds of one turn of all pages, several times what any queue needs: a run ends when its loads have come to an end.
TURN_S = 200.0
# Most time for one load, as in browser.py, and what beginning and ending cost.
LAST_S = 100.0
# A run in which sleeps beside the browser ended later than this, p99, says nothing of the network.
MOST_LATE_MS = 20.0
NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 256; }}
http {{
  types {{ text/html html; text/css css; application/javascript js; image/png png; }}
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; gzip off; etag off; keepalive_requests 10000;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen 80; root {folder}/pages; index index.html; }}
}}
"""


def nginx():
    """The web server: the machine's own, or one that was unpacked."""
    unpacked = common.UNPACKED / "usr/sbin/nginx"
    found = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin") or (unpacked.exists() and str(unpacked))
    if not found:
        raise SystemExit("there is no nginx; type: make study-web")
    return found


def serve(folder):
    """The command that serves all pages."""
    pages.write_all(folder / "pages")
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder))
    return f"exec {nginx()} -e {folder}/nginx.log -p {folder} -c {folder}/nginx.conf"


def measure(queue, download, wanted):
    """Loads of every page in one run, by page, and the report."""
    here = common.fresh(wanted.out / "study" / "web" / f"{queue}-{'download' if download else 'idle'}")
    first = common.first_second(wanted, download)
    seconds = first + wanted.loads * TURN_S
    sets = common.played(wanted, queue, download, seconds + LAST_S, {"flow.page": "none"})
    urls = " ".join(f"http://$LASTHOP_web/{name}/" for name in wanted.pages)
    loader = f"exec {sys.executable} -B {HERE}/browser.py {here} {wanted.loads} {seconds} {first} {urls}"
    programs = [("web", serve(wanted.out / "study" / "web")), ("browser", loader)]
    report = common.emulate(wanted.binary, SCENARIO, sets, programs, here / "lasthop.log", ["--end-with", "browser"])
    lines = [json.loads(line) for line in (here / "loads.jsonl").read_text().splitlines()]
    watch = here / "watch.json"
    late_ms = json.loads(watch.read_text())["late_p99_ms"] if watch.exists() else None
    if late_ms is None:
        raise common.Unusable("the browser did not come to an end")
    if late_ms > MOST_LATE_MS:
        raise common.Unusable(f"the machine was too busy: sleeps beside the browser ended {late_ms:.1f} ms late (p99)")
    by_page = {}
    for name in wanted.pages:
        mine = [line for line in lines if line["page"] == name]
        good = [line for line in mine if is_whole(name, line)]
        if len(good) < min(wanted.loads, 3):
            raise common.Unusable(f"only {len(good)} of {wanted.loads} loads of {name} came to an end: {mine[-1:]}")
        by_page[name] = good
    return by_page, report


def is_whole(name, line):
    """Whether a load brought every object and byte of the page."""
    made = pages.page(name)
    return line.get("failed") == 0 and line.get("objects") == len(made.objects) and line.get("bytes") == made.size


def study(wanted):
    folder = common.fresh(wanted.out / "study" / "web")
    cells, revision = [], None
    for queue, download, (by_page, report) in common.runs(wanted, measure):
        revision = report["run"]["revision"]
        for name, loads in by_page.items():
            figures = common.mean_and_spread([load["response_s"] for load in loads])
            protocols = sorted({protocol for load in loads for protocol in load["protocols"]})
            cells.append({"queue": queue, "download": download, "page": name, **figures, "protocols": protocols})
            common.say(f"  {name}: {figures['mean']:.2f} s, deviation {figures['deviation']:.2f}, {figures['n']} loads")
        cells.append(common.run_cell(queue, download, report, page=None))
    pictures(folder, wanted)
    return {
        "study": "web",
        "revision": revision,
        "machine": common.machine(),
        "window": wanted.window,
        "loads": wanted.loads,
        "programs": [common.version("chromium", "--version"), common.version(nginx(), "-v")],
        "scenario": SCENARIO,
        "paper": PAPER,
        "cells": cells,
    }


def pictures(folder, wanted):
    """One of each page, to look at."""
    for name in wanted.pages:
        for found in sorted(folder.glob(f"*/{name}.png")):
            shutil.copy(found, wanted.out / f"study-web-{name}.png")


def cell(results, queue, download, page):
    return next(
        (c for c in results["cells"] if (c["queue"], c["download"], c["page"]) == (queue, download, page)), None
    )


def table(results):
    """Markdown: response times, what the download takes away, and the paper's."""
    queues = [q for q in common.QUEUES if any(c["queue"] == q for c in results["cells"])]
    shown = [p for p in pages.TABLE_1 if any(c["page"] == p for c in results["cells"])]
    text = [
        f"# Case study 1, web: measured at revision {results['revision']}",
        "",
        f"By `make study-web`, on {results['machine']}; {'; '.join(results['programs'])}. Response time: `loadEventEnd` of the",
        f"browser's navigation timing, s: median, standard deviation, n of {results['loads']} loads. HTTP/1.1, six connections at most,",
        "a browser context of its own for each load. The paper: mean of five visits with Firefox.",
        "",
        "| page | queue | idle | with download | times | paper: idle | with download | times |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for page in shown:
        for queue in queues:
            idle = cell(results, queue, False, page) or cell(results, queues[0], False, page)
            loaded = cell(results, queue, True, page)
            paper = results["paper"][page]
            key = {"fifo": "fifo", "chap-hosts": "chap"}.get(queue)
            of_paper = "| | |"
            if key:
                a, b = paper[f"{key} idle"], paper[f"{key} download"]
                of_paper = f"| {a:.2f} | {b:.2f} | {b / a:.2f} |"
            text.append(
                f"| {pages.TITLES[page]} | {common.SHOWN[queue]} | {one(idle)} | {one(loaded)} | "
                f"{loaded['median'] / idle['median']:.2f} {of_paper if key else '| | | |'}"
            )
    text += common.offered(results)
    text += [
        "",
        "| queue | download, Mbit/s, beside the pages | packets waiting, mean | p99 lag of the runs, ms |",
        "|---|---|---|---|",
    ]
    for queue in queues:
        run, idle = cell(results, queue, True, None), cell(results, queue, False, None)
        lag = max(each["lag_p99_ms"] for each in (run, idle) if each)
        text.append(f"| {common.SHOWN[queue]} | {run['download_mbps']:.2f} | {run['queue_mean_packets']:.0f} | {lag:.3f} |")
    return "\n".join(text) + "\n"


def one(figures):
    return f"{figures['median']:.2f} +- {figures['deviation']:.2f} (n = {figures['n']})"


def main():
    parser = common.arguments("web", __doc__, "loads", 5, "the lightest page")
    parser.add_argument("--pages", type=lambda text: text.split(","), default=list(pages.TABLE_1))
    parser.set_defaults(first=FIRST_S)
    wanted = parser.parse_args()
    if wanted.short:
        wanted.loads, wanted.queues, wanted.pages = 1, ["fifo", "chap"], ["google-news"]
    common.finish(wanted, study(wanted), table)


if __name__ == "__main__":
    main()
