"""Mistakes are exceptions that name their place."""

import pathlib
import tempfile
import unittest

from support import SMALL

import farlane


class PlanErrors(unittest.TestCase):
    def mistake(self, text: str, name: str = "some.toml") -> farlane.PlanError:
        with self.assertRaises(farlane.PlanError) as caught:
            farlane.parse(text, name=name)
        return caught.exception

    def test_mistake_names_file_line_and_key(self) -> None:
        error = self.mistake(SMALL + '[link]\nrate = "10Q"\n')
        self.assertEqual((error.file, error.line, error.key), ("some.toml", 5, "rate"))
        self.assertTrue(str(error).startswith("some.toml:5:"), error)
        error = self.mistake(SMALL + '[link]\nrat = "10G"\n')
        self.assertIn("did you mean 'rate'", str(error))

    def test_text_that_is_not_toml(self) -> None:
        error = self.mistake(SMALL + "rate = \n")
        self.assertEqual((error.file, error.line), ("some.toml", 4))

    def test_first_of_several_mistakes_counts(self) -> None:
        error = self.mistake('[link]\nrate = "1Q"\npropagation = "1q"\n' + SMALL)
        self.assertEqual((error.line, error.key), (2, "rate"))
        self.assertEqual(len(str(error).splitlines()), 2)

    def test_mistake_in_an_included_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            part = pathlib.Path(folder) / "part.toml"
            part.write_text('[link]\nrate = "1Q"\n')
            whole = pathlib.Path(folder) / "whole.toml"
            whole.write_text('include = ["part.toml"]\n' + SMALL)
            with self.assertRaises(farlane.PlanError) as caught:
                farlane.load(whole)
            error = caught.exception
            self.assertEqual((error.file, error.line, error.key), (str(part), 2, "rate"))

    def test_mistake_in_a_setting_names_its_key(self) -> None:
        plan = farlane.parse(SMALL)
        for change in (
            lambda: plan.set({"link.rate": "1Q"}),
            lambda: plan.sweep({"link.rate": ["1G", "1Q"]}),
            lambda: farlane.parse(SMALL, settings={"link.rate": "1Q"}),
        ):
            with self.assertRaises(farlane.PlanError) as caught:
                change()
            self.assertEqual((caught.exception.line, caught.exception.key), (None, "link.rate"))

    def test_missing_file_is_an_os_error(self) -> None:
        for read in (farlane.load, farlane.read_trace, farlane.read_samples):
            with self.assertRaises(FileNotFoundError) as caught:
                read("nowhere.toml")
            self.assertEqual(caught.exception.filename, "nowhere.toml")


class Arguments(unittest.TestCase):
    def setUp(self) -> None:
        self.plan = farlane.parse(SMALL)

    def test_wrong_types(self) -> None:
        for wrong in (
            lambda: self.plan.set({"link.rate": None}),
            lambda: self.plan.set({"link.rate": ["1G"]}),
            lambda: self.plan.set({1: "1G"}),
            lambda: self.plan.sweep({"link.rate": "1G"}),
            lambda: self.plan.run(seed=1.5),
            lambda: self.plan.run(runs="2"),
            lambda: self.plan.run(progress=3),
            lambda: self.plan.bound(1),
            lambda: self.plan.schedule({"read": 3}),
            lambda: farlane.parse(3),
            lambda: farlane.read_trace(),
            lambda: farlane.reproduce("tsn-ports", "gates"),
        ):
            self.assertRaises(TypeError, wrong)

    def test_values_out_of_range(self) -> None:
        for wrong, why in (
            (lambda: self.plan.run(seed=-1), "seed=-1"),
            (lambda: self.plan.run(runs=0), "runs=0: expected 1 to 10000"),
            (lambda: self.plan.run(phases=1), "phases=1: expected 2 to 10000"),
            (lambda: self.plan.run(phases=2, runs=2), "exclude"),
            (lambda: self.plan.run(search=True), "phases"),
            (lambda: self.plan.sweep({"link.rate": []}), "link.rate"),
            (lambda: self.plan.sweep({"seed": range(1, 20_000)}), "at most 10000"),
            (lambda: self.plan.run().frames, "frames=True"),
            (lambda: self.plan.bound("best of all"), "tfa"),
            (lambda: self.plan.schedule({"read": "soon"}), "read=soon"),
            (lambda: self.plan.schedule(time="soon"), "time 'soon'"),
            (lambda: farlane.reproduce("tsn"), "expected nvme-tsn"),
        ):
            self.assertRaisesRegex(ValueError, why, wrong)

    def test_failed_simulation(self) -> None:
        limited = self.plan.set({"limits.events": 10})
        self.assertRaisesRegex(farlane.SimulationError, "events", limited.run)

    def test_failed_points_leave_the_others_alone(self) -> None:
        with self.assertWarnsRegex(UserWarning, "1 points failed, first .*limits.events.*events"):
            sweep = self.plan.sweep({"limits.events": [10, 10_000_000]})
        self.assertEqual([point["set"] for point in sweep.failed], [{"limits.events": "10"}])
        self.assertEqual(len(sweep.document["combinations"]), 1)

    def test_error_of_progress_ends_the_run(self) -> None:
        def progress(state: str) -> None:
            raise LookupError(state)

        self.assertRaises(LookupError, lambda: self.plan.run(runs=10_000, progress=progress))


if __name__ == "__main__":
    unittest.main()
