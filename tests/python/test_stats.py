"""Statistics, against distributions with known means and a function with known sensitivities."""

import random
import unittest

import farlane
from farlane import stats

PLAN = """
transport = "tcp"
[link]
rate = "1G"
[drive]
preset = "970-pro"
[workload]
rw = "randread"
size = "256KiB"
"""


class Statistics(unittest.TestCase):
    def test_intervals_contain_the_mean_as_often_as_they_say(self) -> None:
        source, hits = random.Random(1), 0
        for _ in range(2000):
            known = stats.interval([source.gauss(10, 3) for _ in range(5)], 0.9)
            hits += known.low <= 10 <= known.high
        # Binomial: 1800, standard deviation 13.4.
        self.assertLess(abs(hits - 1800), 54)

    def test_sequential_stopping_reaches_its_precision(self) -> None:
        source, hits, precise = random.Random(2), 0, 0
        for _ in range(400):
            known = stats.sequential(
                lambda first, count: [source.expovariate(0.1) for _ in range(count)],
                precision=0.2,
            )
            hits += known.low <= 10 <= known.high
            precise += abs(known.mean - 10) <= 2
            self.assertLessEqual(known.half_width, known.mean * 0.2 / 1.2)
        # Of skewed values, stopping early costs some coverage: 95 % are nominal.
        self.assertGreater(hits / 400, 0.88)
        self.assertGreater(precise / 400, 0.93)

    def test_paired_seeds_find_a_difference_that_means_hide(self) -> None:
        plan = farlane.parse(PLAN)
        slower = plan.set({"link.propagation": "200ns"})
        found = stats.compare(plan, slower, "mean_ns", runs=6)
        self.assertTrue(found.differs)
        self.assertGreater(found.difference.mean, 0)
        self.assertLessEqual(found.difference.half_width, found.first.half_width + 1e-9)
        same = stats.compare(plan, plan, "mean_ns", runs=3)
        self.assertFalse(same.differs)

    def test_seeds_run_until_the_mean_is_known(self) -> None:
        known = stats.until(farlane.parse(PLAN), "mean_ns", precision=0.05, most=40)
        self.assertGreaterEqual(known.n, 10)
        self.assertLessEqual(known.half_width, known.mean * 0.05 / 1.05)

    def test_the_sensitivity_is_that_of_the_model(self) -> None:
        plan = farlane.parse(PLAN)
        ranges: dict[str, stats.Range] = {
            "link.propagation": (100, 100_000, "ns"),
            "limits.events": (10_000_000, 20_000_000),
        }
        for method, column in (("morris", "mu_star"), ("sobol", "ST")):
            found = stats.sensitivity(plan, ranges, "mean_ns", method=method, n=4)
            self.assertGreater(found["link.propagation"][column], 0)
            self.assertEqual(found["limits.events"][column], 0)

    def test_wrong_measures_are_named(self) -> None:
        plan = farlane.parse(PLAN)
        for column, name, why in (
            ("p98_ns", None, "no column 'p98_ns': there are .*p99_ns"),
            ("p99_ns", "nobody", "no host or stream 'nobody': there are "),
        ):
            with self.assertRaisesRegex(ValueError, why):
                stats.until(plan, column, name=name)


if __name__ == "__main__":
    unittest.main()
