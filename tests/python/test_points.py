"""Sweeps in a folder, by the engines of this package."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import farlane
from farlane import ray_engine
from support import PROGRAM

PLAN = """
transport = "tcp"
[workload]
rw = "randread"
size = "64KiB"
"""
VALUES = {"link.rate": ["1G", "10G"], "drive.mps": [128, 256]}


class Points(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = os.path.join(place.name, "sweep")
        self.file = os.path.join(place.name, "plan.toml")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(PLAN)
        self.plan = farlane.load(self.file)

    def test_rows_and_document_equal_those_in_memory(self) -> None:
        memory = self.plan.sweep(VALUES, runs=2)
        for _ in range(2):
            folder = self.plan.sweep(VALUES, runs=2, folder=self.folder)
            self.assertEqual(folder.document, memory.document)
            self.assertEqual(folder.results.to_arrow(), memory.results.to_arrow())

    def test_the_program_continues_a_folder_of_python(self) -> None:
        self.plan.sweep(VALUES, folder=self.folder)
        sweeps = [f"--sweep={key}={','.join(map(str, all))}" for key, all in VALUES.items()]
        command = [PROGRAM, "sim", self.file, "--json", "--points", self.folder, *sweeps]
        output = subprocess.run(command, check=True, capture_output=True).stdout
        in_memory = self.plan.sweep(VALUES).document
        self.assertEqual(json.loads(output)["combinations"], in_memory["combinations"])

    def test_a_worker_runs_some_points(self) -> None:
        # The folder as an interrupted sweep leaves it.
        self.plan.sweep(VALUES, folder=self.folder)
        points = os.path.join(self.folder, "points")
        for name in os.listdir(points):
            os.remove(os.path.join(points, name))
        worker = [sys.executable, "-m", "farlane.work", self.folder, "--only", "1-2"]
        subprocess.run(worker, check=True)
        self.assertEqual(sorted(os.listdir(points)), ["00001.parquet", "00002.parquet"])
        wrong = subprocess.run([*worker[:-1], "9"], capture_output=True, text=True)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("no point 9: there are 4", wrong.stderr)

    def test_errors(self) -> None:
        for wrong, why in (
            (lambda: self.plan.sweep(VALUES, engine="ray"), "require a folder"),
            (lambda: self.plan.sweep(VALUES, folder=self.folder, engine="cloud"), "expected local"),
            (lambda: self.plan.sweep([{"seed": 1}, {"runs": 2}]), "other keys"),
            (lambda: self.plan.sweep(VALUES, folder=self.folder, point_timeout="soon"), "'soon'"),
        ):
            self.assertRaisesRegex(ValueError, why, wrong)
        engine = "ray,python=/bin/false"
        with self.assertRaisesRegex(farlane.SimulationError, "engine ray: /bin/false"):
            self.plan.sweep(VALUES, folder=self.folder, engine=engine)

    def test_a_point_that_takes_too_long_is_counted(self) -> None:
        endless = self.plan.set({"limits.events": 10**11, "drive.size": "1GiB"})
        with self.assertWarnsRegex(UserWarning, "1 points failed.*longer than 0.2 s"):
            sweep = endless.sweep(
                {"workload.size": ["64KiB", "1GiB"]}, folder=self.folder, point_timeout="200ms"
            )
        self.assertEqual(sweep.failed[0]["set"], {"workload.size": "1GiB"})
        self.assertEqual(len(sweep.results), 1)

    def test_tasks_have_many_points(self) -> None:
        parts = ray_engine.parts(list(range(10_000)), 2)
        self.assertEqual(sum(parts, []), list(range(10_000)))
        self.assertEqual({len(part) for part in parts}, {100})


if __name__ == "__main__":
    unittest.main()
