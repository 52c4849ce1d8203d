"""Messages for slow receivers: the arithmetic by hand, what is read out of a trace, and who may run the emulator."""

import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from figures import emulation
from figures import messages_law as law
from figures.catalogue import Skipped
from figures.simulator import ROOT, Failed

sys.path.insert(0, str(ROOT / "tools" / "study"))
import messages_plan as plan  # noqa: E402  (its folder comes first)
import messages_trace as trace  # noqa: E402


class Law(unittest.TestCase):
    def test_a_frame_takes_its_waiting_its_bytes_and_its_acknowledgment(self):
        # 50 + 310 + 192 + 8 x 1536 / 11 + 10 + 192 + 56 = 1927.1 us.
        self.assertAlmostEqual(1e6 * law.exchange(1500), 1927.09, places=2)
        # 2 x 1448 B in 2 x 1927.09 + 874.0 us.
        self.assertAlmostEqual(law.air() / 1e3, 612.5, places=1)

    def test_a_message_is_as_slow_as_storage_or_air(self):
        # 2 packets of 4,096 B: 4.1 + 10 + 1 ms of storage, sleep and call each, or 6.7 ms of air.
        self.assertAlmostEqual(law.message(8192, 4096, 1e6, 1e-3, 10e-3), 2 * 15.096e-3)
        self.assertAlmostEqual(law.message(8192, 4096, None), 8192 / law.air())

    def test_table_4s_download_before_is_three_sleeps_a_packet_and_its_storage(self):
        # 938 KB in 4,622 ms are 208 kB/s; 1,366 B: 10 + 6.57 ms, 703 times.
        size, rate = 938 * 1024, 938 * 1024 / 4.622
        self.assertAlmostEqual(law.message(size, 1366, rate, 0.0, 10e-3), 11.654, places=3)
        self.assertLess(abs(law.message(size, 1366, rate, 0.0, 10e-3) / 11.993 - 1), 0.05)
        self.assertGreater(abs(law.message(size, 4096, rate, 0.0, 10e-3) / 11.993 - 1), 0.3)

    def test_a_file_costs_its_calls_and_its_bytes(self):
        self.assertAlmostEqual(law.access(10_000, 4096, 500e3, 2e-3), 3 * 2e-3 + 20e-3)

    def test_a_tenth_lies_between_3072_and_8192_bytes_where_a_call_is_worth_520(self):
        size = 3 << 20
        longer = law.access(size, 3072, 420e3, 1.25e-3) / law.access(size, 8192, 420e3, 1.25e-3)
        self.assertAlmostEqual(longer, 1.10, places=3)

    def test_the_best_packet_is_worse_on_either_side(self):
        size, rate, operation = 960_512, 420e3, 1.25e-3
        best = law.best_packet(size, rate, operation)

        def time(packet):
            return packet / rate + size / packet * operation

        self.assertLess(time(best), min(time(best / 2), time(best * 2)))


class Plan(unittest.TestCase):
    def test_a_tuning_of_both_ends_reaches_both_directions(self):
        sets = plan.both({"packet": "4096B"}, {"delay": "10ms"})
        self.assertEqual(len(sets), 4)
        self.assertIn("fetch.receiver.delay=10ms", sets)
        self.assertIn("send.sender.packet=4096B", sets)

    def test_what_is_compared_stands_together(self):
        steps = plan.transfers(2, [1], {"a": [], "tuned": None})
        self.assertEqual(
            [(s["run"], s["tuning"], s["do"]) for s in steps[:4]],
            [(0, t, w) for t in ("a", "tuned") for w in plan.WAYS],
        )
        self.assertNotIn("sets", steps[2], "tuned: the device's own profile")

    def test_storage_is_written_at_half_the_speed_it_is_read(self):
        self.assertEqual(plan.storage(500), '{ write = "500kB/s", read = "1000kB/s", operation = "1040us" }')


def line(t, way, size, window, **more):
    return {"t_s": t, "connection": "PDA:1 W:7", "direction": way, "bytes": size, "offered_window": window, **more}


class Trace(unittest.TestCase):
    LINES = [
        line(0.0, "up", 0, 64000),
        line(0.1, "down", 1448, 30000, data_ms=2.0),
        line(0.2, "up", 0, 3000, ack_ms=1.0),
        line(0.3, "down", 1448, 30000, data_ms=9.0),
        line(0.4, "up", 0, 700, ack_ms=40.0),
        line(0.5, "up", 0, 9000, window_update=True),
        line(0.6, "down", 1448, 30000, data_ms=3.0),
        line(0.7, "up", 0, 0),
    ]

    def test_a_download_is_told_by_where_its_bytes_went(self):
        gave = trace.transfer(self.LINES)
        self.assertEqual((gave["way"], gave["segments"], gave["acks"], gave["window_updates"]), ("down", 3, 3, 1))
        self.assertEqual(gave["data_ms"], [2.0, 9.0, 3.0])
        self.assertEqual(gave["ack_ms"], [[0.1, 1.0], [0.3, 40.0]])

    def test_windows_before_the_first_and_after_the_last_segment_do_not_count(self):
        gave = trace.transfer(self.LINES)
        self.assertEqual(trace.least(gave["window"]), 700)
        self.assertEqual(gave["first_collapse_segment"], 2)
        self.assertAlmostEqual(gave["longest_silence_ms"], 200.0)

    def test_connections_are_told_apart_and_come_in_their_order_also_when_a_port_comes_again(self):
        syn = {"flags": "SYN"}
        lines = [
            {**line(1.0, "up", 0, 1, **syn), "connection": "b"},
            line(0.5, "up", 0, 1, **syn),
            line(0.6, "up", 0, 1, **syn),
            line(0.7, "up", 900, 1, ack=1),
            line(3.0, "up", 0, 1, **syn),
        ]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.jsonl"
            path.write_text("".join(json.dumps(each) + "\n" for each in [{"format": 1}, *lines]))
            self.assertEqual([len(each) for each in trace.connections(path)], [3, 1, 1])


class Simulator:
    """As far as a study asks one."""

    binary = "lasthop"
    say = staticmethod(lambda text: None)

    def __init__(self, folder):
        self.folder = Path(folder)


class Emulation(unittest.TestCase):
    def test_without_root_and_without_sudo_it_is_skipped_aloud(self):
        refused = mock.Mock(returncode=1)
        with tempfile.TemporaryDirectory() as folder, mock.patch("os.geteuid", return_value=1000):
            with mock.patch("subprocess.run", return_value=refused), self.assertRaisesRegex(Skipped, "sudo -v"):
                emulation.part(Simulator(folder), "messages", "ratio")
            with mock.patch("subprocess.run", side_effect=FileNotFoundError), self.assertRaisesRegex(
                Skipped, "no sudo"
            ):
                emulation.part(Simulator(folder), "messages", "ratio")

    def test_a_part_that_was_measured_is_read_back_and_a_failed_study_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch("os.geteuid", return_value=0):
            kept = Path(folder) / "messages" / "messages-0123.json"
            kept.parent.mkdir()
            kept.write_text(json.dumps({"parts": {"ratio": {"rows": [1]}}}))
            with mock.patch("subprocess.run", return_value=mock.Mock(returncode=1)) as run:
                self.assertEqual(emulation.part(Simulator(folder), "messages", "ratio"), {"rows": [1]})
                self.assertFalse(run.called)
                with self.assertRaises(Failed):
                    emulation.part(Simulator(folder), "messages", "path")
                self.assertIn("--add-to", run.call_args.args[0])


if __name__ == "__main__":
    unittest.main()
