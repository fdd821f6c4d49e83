"""Traces and samples that the program wrote."""

import collections.abc
import contextlib
import csv
import pathlib
import re
import subprocess
import tempfile
import unittest

from support import PROGRAM, plan, program

import farlane


@contextlib.contextmanager
def listening(*arguments: str) -> collections.abc.Iterator[str]:
    """Start the program on a free port, and return its address."""
    command = [PROGRAM, *arguments]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **streams) as node:
        try:
            assert node.stderr
            places = (re.search(r"listening on (\S+)", line) for line in node.stderr)
            yield next(place.group(1) for place in places if place)
        finally:
            if arguments[0] == "device":
                node.terminate()


class Reading(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def rows(self, file: pathlib.Path) -> list[dict[str, str]]:
        with open(file, encoding="utf-8") as lines:
            return list(csv.DictReader(lines))

    def same(self, table: farlane.Table, file: pathlib.Path) -> None:
        """Check a table against a CSV file."""
        wanted = self.rows(file)
        self.assertGreater(len(wanted), 10)
        self.assertEqual(table.columns, list(wanted[0]))
        cells = [
            {name: "" if cell is None else str(cell) for name, cell in row.items()}
            for row in table.to_arrow().to_pylist()
        ]
        self.assertEqual(cells, wanted)

    def test_trace_has_the_rows_of_the_program(self) -> None:
        trace, rows = self.folder / "run.trace", self.folder / "rows.csv"
        program("sim", plan("tcp"), "--trace", trace)
        traces = sorted(self.folder.glob("run.trace*"))
        self.assertGreater(len(traces), 1)
        program("trace", *traces, "--csv", rows, "--limit", "0")
        self.same(farlane.read_trace(*traces), rows)

    def test_samples_of_io(self) -> None:
        rows, parquet = self.folder / "io.csv", self.folder / "io.parquet"
        with listening("device", "--listen", "127.0.0.1:0", "--namespace", "ram=64M") as node:
            load = ("--connect", node, "--rw", "randread", "--size", "256k")
            program("io", *load, "--csv", rows, "--parquet", parquet)
        for file in (rows, parquet):
            samples = farlane.read_samples(file)
            self.assertEqual(len(samples), 64)
            self.same(samples, rows)

    def test_samples_of_latency(self) -> None:
        rows, parquet = self.folder / "far.csv", self.folder / "far.parquet"
        files = ("--csv", str(rows), "--parquet", str(parquet))
        with listening("latency", "listen", "127.0.0.1:0", "--json", *files) as node:
            program("latency", "talk", node, "--interval", "1ms", "--count", "100")
        for file in (rows, parquet):
            samples = farlane.read_samples(file)
            self.assertEqual(len(samples), 100)
            self.same(samples, rows)
            frame = samples.to_pandas()
            self.assertTrue((frame.received_ns >= frame.sent_ns).all())

    def test_tables_of_sim(self) -> None:
        folders = [self.folder / name for name in ("csv", "parquet")]
        program("sim", plan("tcp"), "--csv", folders[0], "--parquet", folders[1])
        for name in ("commands", "links", "histograms"):
            written = folders[0] / f"{name}.csv"
            tables = [folders[0] / f"{name}.csv", folders[1] / f"{name}.parquet"]
            first, second = (farlane.read_samples(file) for file in tables)
            self.assertEqual(first.to_arrow().to_pylist(), second.to_arrow().to_pylist())
            if name == "commands":
                self.same(first, written)
                self.assertEqual(second.units["latency_ns"], "ns")

    def test_file_of_another_format(self) -> None:
        file = self.folder / "other"
        file.write_bytes(b"PAR1 and no more")
        for read in (farlane.read_trace, farlane.read_samples):
            with self.assertRaises(ValueError) as caught:
                read(file)
            self.assertIn(str(file), str(caught.exception))


if __name__ == "__main__":
    unittest.main()
