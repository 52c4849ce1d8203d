"""The homes' tables and the random homes: what is reckoned, without a run."""

import sys
import tomllib
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "study"))

import homes  # noqa: E402
import random_homes  # noqa: E402
import simulated  # noqa: E402


class Bounds(unittest.TestCase):
    def test_an_exchange_is_what_802_11_says(self):
        home = {"wifi": {"standard": "802.11g", "rate": "54Mbit/s"}, "station": []}
        # DIFS 28, mean backoff 67.5, data 254, SIFS 10, ACK at 24 Mbit/s 34.
        self.assertAlmostEqual(homes.exchange_us(home, {}), 393.5)
        # 6 Mbit/s: data 20 + 4 x ceil(12310 / 24) + 6, ACK 20 + 4 x ceil(134 / 24) + 6.
        self.assertAlmostEqual(homes.exchange_us(home, {"rate": "6Mbit/s"}), 28 + 67.5 + 2078 + 10 + 50)

    def test_the_floors_count_only_beyond_the_path(self):
        home = {"server": [{"name": "W", "delay": "4ms"}], "wan": {"delay": "1ms"}, "station": [{"name": "S"}]}
        home["flow"] = [{"name": "f", "from": "W", "to": "S", "kind": "ftp", "count": 20}]
        # 24 Mbit/s for 10 ms are 30,000 B, 1,500 of each; twenty floors of 4,500 B are 60,000 B more, 20 ms.
        self.assertAlmostEqual(homes.floors_ms(home, "down", 24), 20.0)
        home["flow"][0]["count"] = 5
        self.assertEqual(homes.floors_ms(home, "down", 24), 0.0)

    def test_every_home_has_a_game_and_is_deep_enough(self):
        for path in homes.FOLDER.glob("*.toml"):
            home = homes.load(path.stem)
            self.assertEqual(home["name"], path.stem)
            self.assertLessEqual({"game-down", "game-up"}, {flow["name"] for flow in home["flow"]}, path)
            self.assertEqual(home["control"]["window"]["capacity"], "learn", path)
            self.assertGreaterEqual(home["wifi"]["queue"]["limit"], 1000, path)
            first = min(float(flow["start"][:-1]) for flow in home["flow"] if flow["kind"] in homes.PAYLOAD)
            self.assertEqual((first, home["measure_from"]), (homes.BEGIN, f"{homes.BEGIN}s"), path)


class Random(unittest.TestCase):
    def test_a_number_is_a_home_for_ever_within_the_limits(self):
        for number in range(1, 200):
            home = random_homes.generate(7, number)
            self.assertEqual(home, random_homes.generate(7, number))
            self.assertTrue(1 <= len(home["station"]) <= 16)
            # One of them may be a pair.
            self.assertTrue(1 <= len(home["flow"]) <= 65)
            self.assertTrue(20 <= home["wifi"]["queue"]["limit"] <= 2000)
        self.assertNotEqual(random_homes.generate(7, 1)["server"], random_homes.generate(8, 1)["server"])

    def test_the_text_says_what_the_tables_say(self):
        home = random_homes.with_control(random_homes.generate(7, 3), "learn")
        read = tomllib.loads(simulated.toml(home))
        self.assertEqual(read["control"]["window"], {"capacity": "learn"})
        self.assertEqual([read[key] for key in ("wan", "wifi", "flow")], [home[key] for key in ("wan", "wifi", "flow")])

    def test_the_bound_of_a_mean(self):
        mean, off = random_homes.bound([1.0, 2.0, 3.0, 2.0])
        self.assertAlmostEqual(mean, 2.0)
        self.assertAlmostEqual(off, 2.576 * (2 / 3) ** 0.5 / 2)


if __name__ == "__main__":
    unittest.main()
