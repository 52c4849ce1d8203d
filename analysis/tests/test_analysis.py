"""What is computed before anything is drawn: `python3 -m unittest discover -s analysis/tests -t analysis`.

Needs Python alone, but for sweeps and traces, which need the package `lasthop` (tools/test-python leaves it in target/python-package).
"""

import tempfile
import unittest
from pathlib import Path

from figures import bianchi, peers, series, simulator, stats, suffices, table
from figures.catalogue import Missing
from figures.stats import Sample


class Statistics(unittest.TestCase):
    def test_a_number_fits_within_a_twentieth(self):
        self.assertTrue(stats.fits(58000, 55371) and stats.fits(52700, 55371))
        self.assertFalse(stats.fits(52500, 55371) or stats.fits(63803, 58677))

    def test_a_sample_has_the_spread_between_seeds(self):
        ours = stats.sample([1.0, 2.0, 3.0, 4.0])
        self.assertEqual((ours.mean, ours.n), (2.5, 4))
        self.assertAlmostEqual(ours.sd, 1.2909944, places=6)
        self.assertAlmostEqual(ours.se, 0.6454972, places=6)
        self.assertEqual(stats.sample([7.0]), Sample(7.0, 0.0, 1))
        self.assertIsNone(stats.sample([]))

    def test_two_means_differ_beyond_three_standard_errors_and_the_share(self):
        ours, theirs = Sample(100.0, 4.0, 16), Sample(104.1, 4.0, 16)
        self.assertFalse(stats.outside(ours, theirs), "3 x sqrt(1 + 1) = 4.24")
        self.assertTrue(stats.outside(ours, Sample(104.3, 4.0, 16)))
        self.assertFalse(stats.outside(ours, Sample(104.3, 4.0, 16), share=0.05))
        self.assertFalse(stats.outside(ours, Sample(104.3, 4.0, 16), least=5.0))

    def test_a_single_published_number_is_held_to_the_spread_of_our_seeds(self):
        self.assertFalse(stats.outside(Sample(100.0, 4.0, 20), 107.9))
        self.assertTrue(stats.outside(Sample(100.0, 4.0, 20), 108.1))
        self.assertFalse(stats.outside(Sample(100.0, 4.0, 20), None))

    def test_a_quantile_lies_between_its_neighbours(self):
        self.assertEqual(stats.quantile([4.0, 1.0, 3.0, 2.0], 0.5), 2.5)
        self.assertEqual(stats.quantile([5.0], 0.95), 5.0)

    def test_bianchi_is_the_reference_sheets(self):
        for timing, figures in (
            (bianchi.B, {1: 6.051, 5: 6.219, 20: 5.404}),
            (bianchi.G, {1: 30.496, 5: 29.336, 20: 24.951}),
        ):
            for stations, mbps in figures.items():
                self.assertAlmostEqual(bianchi.bianchi(stations, timing), mbps, places=3)


class Series(unittest.TestCase):
    def test_a_value_holds_until_it_changes(self):
        points = [(1.0, 10.0), (2.0, 20.0)]
        self.assertEqual([series.held(points, x) for x in (0.5, 1.0, 1.9, 2.0, 9.0)], [float("inf"), 10, 10, 20, 20])

    def test_thinning_keeps_ends_and_peaks(self):
        points = [(float(x), 500.0 if x == 4321 else float(x % 7)) for x in range(10_000)]
        thinned = series.thin(points, 50)
        self.assertLessEqual(len(thinned), 200)
        self.assertEqual((thinned[0], thinned[-1]), (points[0], points[-1]))
        self.assertIn((4321.0, 500.0), thinned)
        self.assertEqual(series.thin(points[:10], 50), points[:10])

    def test_a_value_stays_until_it_changes(self):
        self.assertEqual(series.as_steps([(1, 5), (1.5, 5), (2, 8)], 4), [(1, 5), (2, 5), (2, 8), (4, 8)])
        self.assertEqual(series.as_steps([], 4), [])

    def test_jitter_is_the_change_of_delay(self):
        self.assertEqual(series.jitter([(0.0, 20), (0.05, 23), (0.1, 22)]), [(0.05, 3), (0.1, 1)])

    def test_streams_of_one_kind_are_one_value_per_run(self):
        rows = [{"flows.a.1.x": 1.0, "flows.a.2.x": 3.0}, {"flows.a.1.x": 5.0, "flows.a.2.x": None}, {}]
        self.assertEqual(series.pooled(rows, ["a.1", "a.2"], "x", 10.0), [20.0, 50.0])

    def test_cumulative_counts_reach_the_number_of_values(self):
        self.assertEqual(series.cumulative([3, 1, 2]), [(1, 1), (2, 2), (3, 3)])


class Suffices(unittest.TestCase):
    def test_what_is_near_the_best_is_enough(self):
        values = [("sender", 4.0), ("Snoop", 4.7), ("link", 4.8)]
        self.assertEqual(suffices.enough(values, share=0.05), ["Snoop", "link"])
        self.assertEqual(suffices.enough(values, share=0.2), ["sender", "Snoop", "link"])
        self.assertEqual(suffices.enough(values), ["link"])
        self.assertEqual(suffices.enough([("no", 97.4), ("yes", 98.5)], near=1.0), ["yes"])

    def test_a_hand_off_costs_the_time_in_which_nothing_came(self):
        self.assertAlmostEqual(suffices.time_lost(4.5, 5.0, 10_000.0), 1000.0)
        self.assertLess(suffices.time_lost(5.1, 5.0, 10_000.0), 0.0)

    def test_losses_of_several_flows_are_one_share_of_what_they_sent(self):
        row = {"flows.a.sent": 100, "flows.b.sent": 300, "flows.a.lost.channel": 1, "flows.b.lost.channel": 7}
        self.assertEqual(suffices.percent_lost(row, ["a", "b"], "channel"), 2.0)


class Tables(unittest.TestCase):
    def test_a_difference_without_a_reason_is_shown_as_one(self):
        near, far = Sample(10.2, 1.0, 4), Sample(20.0, 1.0, 4)
        agrees = table.Line("a", Sample(10.0, 1.0, 4), table.PERCENT, paper=10.5, ns2=near)
        differs = table.Line("b", Sample(10.0, 0.1, 4), table.PERCENT, paper=12.0)
        explained = table.Line("c", Sample(10.0, 0.1, 4), table.PERCENT, "within 10", far, why_ns2="another radio")
        text = table.three_columns([agrees, differs, explained]).splitlines()
        self.assertEqual(text[2], "| a | 10.50 | 10.20 +- 1.00 | 10.00 +- 1.00 |  |")
        self.assertEqual(text[3], "| b | 12.00 | - | 10.00 +- 0.10 | the paper: **not explained** |")
        self.assertEqual(text[4], "| c | within 10 | 20.00 +- 1.00 | 10.00 +- 0.10 | ns-2: another radio |")

    def test_a_table_takes_its_place_in_a_chapter_and_nothing_else(self):
        chapter = "before\n<!-- table x -->\nold\n<!-- end -->\nafter <!-- end -->\n"
        once = table.splice(chapter, "x", "| new |")
        self.assertEqual(once, "before\n<!-- table x -->\n\n| new |\n\n<!-- end -->\nafter <!-- end -->\n")
        self.assertEqual(table.splice(once, "x", "| new |"), once)
        with self.assertRaises(ValueError):
            table.splice(chapter, "y", "")


class Pictures(unittest.TestCase):
    def test_what_git_does_not_keep_is_what_can_be_drawn_again(self):
        try:
            from figures.__main__ import CATALOGUE
        except ImportError as why:
            print(f"SKIPPED: {self.id()}: {why}")
            self.skipTest(str(why))
        book = Path(__file__).resolve().parents[2] / "book" / "src"
        ignored = (book / ".gitignore").read_text().split("\n")
        published = {Path(line).stem for line in ignored if line.startswith("figures/")}
        catalogue = {figure.name: figure for figure in CATALOGUE}
        self.assertEqual(published - set(catalogue), set())
        for name in published:
            chapter = (book / catalogue[name].chapter).read_text()
            self.assertIn(f"figures/{name}.svg", chapter, f"{catalogue[name].chapter} shows it")


class Simulator(unittest.TestCase):
    def setUp(self):
        try:
            import lasthop  # noqa: F401
        except ImportError as why:
            print(f"SKIPPED: {self.id()}: {why}")
            self.skipTest(str(why))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = Path(folder.name) / "lasthop"
        program.touch()
        self.said = []
        self.simulator = simulator.Simulator(program, Path(folder.name) / "cache", most_seeds=2, say=self.said.append)

    SHORT = {"duration": "8s", "flow.audio.start": "2s"}

    def test_a_sweep_gives_rows_of_numbers_and_runs_them_once(self):
        first = self.simulator.sweep("papers/arq", {**self.SHORT, "wifi.attempts": [1, 4]}, seeds=20)
        rows = self.simulator.sweep("papers/arq", {**self.SHORT, "wifi.attempts": [1, 4]}, seeds=20)
        self.assertEqual(first, rows)
        self.assertEqual([(row["wifi.attempts"], row["seed"]) for row in rows], [(1, 1), (1, 2), (4, 1), (4, 2)])
        one, four = (simulator.column(simulator.where(rows, wifi__attempts=r), "flows.ftp.goodput_bps") for r in (1, 4))
        self.assertGreater(min(four), max(one))
        self.assertEqual(simulator.column(rows, "flows.ftp.page"), [])
        with self.assertRaisesRegex(Missing, "no row has arq.attempts"):
            simulator.where(rows, arq__attempts=1)
        runs = list((self.simulator.cache / "stores" / "papers" / "arq" / "packs").iterdir())
        self.assertEqual(len(runs), 1)

    def test_a_trace_has_the_curves_of_flows_and_queues(self):
        run = self.simulator.trace("papers/arq", {**self.SHORT, "wifi.attempts": 2}, seed=3)
        windows, waiting = run.curve("ftp", "cwnd"), run.curve("AP to stations", "queue_packets")
        self.assertEqual(windows[0][1], 2.0)
        self.assertEqual(max(value for _, value in windows), run.flow("ftp")["tcp"]["cwnd_max"])
        self.assertTrue(waiting and not run.curve("AP", "cwnd"))

    def test_what_is_refused_is_said(self):
        with self.assertRaisesRegex(simulator.Failed, "wifi.quue"):
            self.simulator.sweep("papers/arq", {"wifi.quue": 3}, seeds=1)


class Peers(unittest.TestCase):
    def test_a_case_of_the_golden_files_is_found_by_its_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            text = "attempts,capacity_mbps,runs,acked,acked_sd\n4,,20,53682,1453\n4,18,20,58633,890\n"
            (Path(folder) / "ns2-home.csv").write_text(text, encoding="ascii")
            here = Path(folder)
            self.assertEqual(peers.ns2("home", "acked", here, attempts=4, capacity_mbps=18), Sample(58633.0, 890.0, 20))
            self.assertEqual(peers.ns2("home", "acked", here, attempts=4, capacity_mbps=None).mean, 53682.0)
            self.assertIsNone(peers.ns2("home", "acked", here, attempts=5, capacity_mbps=18))
            self.assertIsNone(peers.ns2("arq", "acked", here))


if __name__ == "__main__":
    unittest.main()
