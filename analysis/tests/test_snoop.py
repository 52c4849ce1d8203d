"""The Snoop paper's equations and metrics, by hand."""

import math
import unittest

from figures import snoop_findings as findings
from figures import snoop_law as law
from figures.catalogue import Missing
from figures.snoop_cells import RENO, RENO_SNOOP
from figures.snoop_metrics import jain, metrics


class Law(unittest.TestCase):
    def test_vegas_counts_the_packets_that_wait(self):
        # 20 packets over 50 ms where 40 would do: a fifth of them wait.
        self.assertAlmostEqual(law.vegas_difference(20, 0.050, 0.040), 4.0)
        self.assertEqual(law.vegas_difference(20, 0.040, 0.040), 0.0)

    def test_the_friendly_rate_is_rfc_5348s(self):
        # 1460 B, 100 ms, RTO = 4 RTT, p = 1 %: 1460 / (0.1 x 0.0816497 + 0.4 x 0.1837117 x 0.01 x 1.0032) B/s.
        self.assertAlmostEqual(law.tfrc_rate(1460, 0.1, 0.4, 0.01), 8 * 1460 / (0.00816497 + 0.00073721), delta=20.0)

    def test_without_timeouts_the_friendly_rate_is_the_simple_one(self):
        for p in (1e-4, 0.01, 0.1):
            self.assertAlmostEqual(law.tfrc_rate(960, 0.05, 0.0, p), law.tcp_rate(960, 0.05, p), delta=1.0)

    def test_the_simple_rate_halves_when_four_times_as_much_is_lost(self):
        # sqrt(3/2) x 960 x 8 / (0.0473 x 0.1) = 1.9886 Mbit/s.
        self.assertAlmostEqual(law.tcp_rate(960, 0.0473, 0.01) / 1e6, 1.9886, places=4)
        self.assertAlmostEqual(law.tcp_rate(960, 0.0473, 0.04), law.tcp_rate(960, 0.0473, 0.01) / 2)
        self.assertEqual(law.tcp_rate(960, 0.0473, 0), math.inf)

    def test_losses_of_three_places_are_those_that_survive_none(self):
        self.assertAlmostEqual(law.path_loss(0.1, 0.2, 0.3), 1 - 0.9 * 0.8 * 0.7)
        self.assertEqual(law.path_loss(0, 0, 0.01), 0.01)
        self.assertAlmostEqual(law.path_loss(0.1, 0.2, 0), 0.1 + 0.9 * 0.2, msg="(6)")

    def test_a_link_is_under_used_by_what_its_losses_leave_of_the_rate(self):
        self.assertTrue(law.underused(2e6, 0.01, 4.8e6, 0.01))
        self.assertFalse(law.underused(4.8e6, 0.01, 4.8e6, 0.01), "with pS = pW the condition is TS < BW")
        self.assertTrue(law.underused(4.8e6, 0.02, 4.8e6, 0.01), "a queue took the rest")
        self.assertEqual(law.delivered(960, 0.0473, 1e-6, 4.8e6, 0.0), 4.8e6)

    def test_repair_makes_the_rate_independent_of_the_links_losses(self):
        repaired = [law.tcp_rate(960, 0.05, law.path_loss(0.0, 0.001, 0.0)) for _ in (0.01, 0.05)]
        lossy = [law.tcp_rate(960, 0.05, law.path_loss(0.0, 0.001, p)) for p in (0.01, 0.05)]
        self.assertEqual(repaired[0], repaired[1])
        self.assertTrue(lossy[1] < lossy[0] < repaired[0])

    def test_delay_is_the_sum_of_its_parts(self):
        hops = [(0.0008, 0.001, 0.020), (0.0016, 0.010, 0.001)]
        self.assertAlmostEqual(law.end_to_end_delay(hops, encode=0.04, packetise=0.001, playback=0.1), 0.1754)


class Metrics(unittest.TestCase):
    # Two flows, the second with half the packets; as a sweep flattens a report.
    ROW = {
        "seed": 1,
        "flows.media.1.sent": 200,
        "flows.media.1.delivered": 190,
        "flows.media.1.goodput_bps": 3e6,
        "flows.media.1.timely_index": 0.9,
        "flows.media.1.timely_in_order": 0.8,
        "flows.media.1.delayed_rate": 10 / 190,
        "flows.media.1.loss_rate": 0.05,
        "flows.media.1.tcp.retransmitted": 12,
        "flows.media.1.tcp.local_retransmitted": 7,
        "flows.media.2.sent": 100,
        "flows.media.2.delivered": 100,
        "flows.media.2.goodput_bps": 1e6,
        "flows.media.2.timely_index": 0.6,
        "flows.media.2.timely_in_order": 0.4,
        "flows.media.2.delayed_rate": 0.4,
        "flows.media.2.loss_rate": 0.0,
        "flows.media.2.tcp.retransmitted": 0,
        "flows.media.2.tcp.local_retransmitted": 1,
        "flows.media.2.start_up.sent": 5,
        "flows.other.sent": 9,
    }

    def test_shares_are_of_the_packets_of_all_flows(self):
        all_of_them = metrics(self.ROW)
        self.assertEqual(all_of_them.goodput_mbps, 4.0)
        self.assertAlmostEqual(all_of_them.timely_index, (180 + 60) / 300)
        self.assertAlmostEqual(all_of_them.timely_per_flow, 0.75, msg="who sends less counts as much")
        self.assertAlmostEqual(all_of_them.timely_in_order, 0.6)
        self.assertAlmostEqual(all_of_them.delayed_rate, (10 + 40) / 290)
        self.assertAlmostEqual(all_of_them.loss_rate, 10 / 300)
        self.assertEqual((all_of_them.retransmitted, all_of_them.link_retransmitted), (6.0, 4.0))
        self.assertAlmostEqual(all_of_them.jain, 16 / (2 * 10))

    def test_a_single_flow_has_no_number_and_without_snoop_no_local_count(self):
        row = {key.replace("media.1.", "media."): value for key, value in self.ROW.items() if "media.1." in key}
        del row["flows.media.tcp.local_retransmitted"]
        self.assertEqual((metrics(row).link_retransmitted, metrics(row).jain), (0.0, 1.0))
        self.assertAlmostEqual(metrics(row).timely_index, 0.9)

    def test_a_run_without_the_flow_is_told(self):
        with self.assertRaises(Missing):
            metrics({"seed": 1, "flows.other.sent": 9})

    def test_fairness_is_one_for_equals_and_a_share_for_one_of_n(self):
        self.assertEqual(jain([2.0, 2.0, 2.0]), 1.0)
        self.assertEqual(jain([1.0, 0.0, 0.0, 0.0]), 0.25)
        self.assertEqual(jain([0.0, 0.0]), 1.0)


class Findings(unittest.TestCase):
    def at(self, **means):
        """A cell where Reno has these goodputs, without and with Snoop."""
        return lambda flows, rate: lambda scheme, metric: means["helped" if scheme is RENO_SNOOP else "alone"]

    def test_what_is_greater_as_said_holds_and_what_is_alike_says_nothing(self):
        raises = findings.ratio("goodput_mbps", RENO_SNOOP, RENO, 1)
        self.assertEqual(raises(self.at(helped=3.0, alone=2.0)(1, 0.01)), ("x 1.50", True))
        self.assertEqual(raises(self.at(helped=1.0, alone=2.0)(1, 0.01)), ("x 0.50", False))
        self.assertEqual(raises(self.at(helped=2.01, alone=2.0)(1, 0.01)), ("x 1.00", None))
        falls = findings.difference("timely_index", RENO_SNOOP, RENO, -1)
        self.assertEqual(falls(self.at(helped=0.7, alone=0.8)(1, 0.01)), ("-0.100", True))
        self.assertEqual(falls(self.at(helped=0.8, alone=0.7)(1, 0.01)), ("+0.100", False))

    def test_losses_below_none_are_none(self):
        cuts = findings.ratio("loss_rate", RENO_SNOOP, RENO, -1)
        self.assertEqual(cuts(self.at(helped=-0.001, alone=0.01)(1, 0.01)), ("x 0.00", True))
        self.assertEqual(cuts(self.at(helped=0.0, alone=0.0)(1, 0.01)), ("x 1.00", None))

    def test_a_row_counts_the_cells_that_are_not_alike(self):
        finding = findings.Finding("", findings.ratio("goodput_mbps", RENO_SNOOP, RENO, 1))
        self.assertEqual(
            findings.judged(finding, self.at(helped=1.0, alone=2.0)), (", ".join(["~~x 0.50~~"] * 3), [False] * 3)
        )
        self.assertEqual(findings.judged(finding, self.at(helped=2.0, alone=2.0)), (", ".join(["x 1.00"] * 3), []))
        self.assertEqual(
            [findings.verdict(held) for held in ([], [True], [False], [True, False])],
            ["alike", "yes", "no", "in 1 of 2"],
        )

    def test_a_sender_that_ns2_has_not_leaves_a_dash(self):
        def unknown(flows, rate):
            raise findings.Unknown

        self.assertEqual(findings.judged(findings.FINDINGS[0], unknown), ("-", []))
        with self.assertRaises(findings.Unknown):
            findings.others(lambda scheme, metric: unknown(1, 0.01), "jain", (RENO,))


if __name__ == "__main__":
    unittest.main()
