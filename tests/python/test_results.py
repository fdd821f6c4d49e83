"""Results equal those of the program."""

import json
import pathlib
import tempfile
import unittest

import pandas
import polars
import pyarrow
import pyarrow.parquet
from support import SMALL, plan, program

import farlane


def addresses(table: pyarrow.Table) -> list[int]:
    """Return where the bytes of all columns are, also those of dictionaries."""
    found = []
    for column in table.columns:
        for chunk in column.chunks:
            found += [buffer.address for buffer in chunk.buffers() if buffer]
    return found


class Results(unittest.TestCase):
    def same(self, result: farlane.Result | farlane.Sweep, *arguments: str) -> None:
        """Check all rows and the document against `farlane sim` with these arguments."""
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / "tables"
            document = program("sim", *arguments, "--json", "--parquet", folder)
            self.assertEqual(result.document, json.loads(document))
            written = {path.stem for path in folder.glob("*.parquet")}
            self.assertEqual(set(result.tables), written)
            for name, table in result.tables.items():
                wanted = pyarrow.parquet.read_table(folder / f"{name}.parquet")
                found = table.to_arrow()
                self.assertEqual(found.column_names, wanted.column_names)
                self.assertEqual(found.to_pylist(), wanted.to_pylist(), name)
                self.assertEqual(len(table), wanted.num_rows)

    def test_run_has_the_rows_and_the_document_of_the_program(self) -> None:
        cell = plan("industrial-cell")
        result = farlane.load(cell, {"drive.mps": 128}).run(runs=2, seed=7, frames=True)
        options = ("--runs", "2", "--seed", "7", "--frames", "--set", "drive.mps=128")
        self.assertGreater(len(result.frames), 100)
        self.assertGreater(len(result.streams), 3)
        self.same(result, cell, *options)

    def test_trials_have_the_rows_of_the_program(self) -> None:
        cell = plan("industrial-cell")
        self.same(farlane.load(cell).run(phases=3), cell, "--phases", "3")

    def test_sweep_has_the_rows_of_all_combinations(self) -> None:
        tcp = plan("tcp")
        rates = {"link.rate": ["1G", "10G"], "drive.mps": [128, 256]}
        sweep = farlane.load(tcp).sweep(rates, runs=2)
        options = ("--sweep", "link.rate=1G,10G", "--sweep", "drive.mps=128,256", "--runs", "2")
        self.same(sweep, tcp, *options)

    def test_settings_make_a_new_plan(self) -> None:
        first = farlane.parse(SMALL)
        second = first.set({"host.push": "off", "link.rate": "10G"}).set({"drive.mps": 512})
        self.assertEqual(first.text, SMALL)
        settings = "# --set host.push=off\n# --set link.rate=10G\n# --set drive.mps=512"
        self.assertTrue(second.text.endswith(settings), second.text)
        rows = [one.run().commands.to_pandas().latency_ns.sum() for one in (first, second)]
        self.assertNotEqual(*rows)

    def test_bounds_and_schedules_are_the_documents_of_the_program(self) -> None:
        tsn = plan("tsn")
        bound = json.loads(program("tsn", "bound", tsn, "--method", "tfa", "--json"))
        self.assertEqual(farlane.load(tsn).bound("tfa"), bound)
        arguments = ("--deadline", "read=2ms", "--time", "60s", "--json")
        schedule = json.loads(program("tsn", "schedule", tsn, *arguments))
        found = farlane.load(tsn).schedule({"read": "2ms"}, time="60s")
        self.assertEqual(found, schedule)
        self.assertTrue(found["feasible"])

    def test_reproduction_is_the_document_of_the_program(self) -> None:
        wanted = json.loads(program("reproduce", "tsn-ports", "--only", "gates", "--json"))
        self.assertEqual(farlane.reproduce("tsn-ports", ["gates"]), wanted)


class Tables(unittest.TestCase):
    def setUp(self) -> None:
        self.table = farlane.parse(SMALL).run().commands

    def test_numbers_are_not_copied(self) -> None:
        first, second = self.table.to_arrow(), self.table.to_arrow()
        self.assertEqual(addresses(first), addresses(second))
        self.assertGreaterEqual(len(addresses(first)), len(first.columns))
        same = polars.Series(self.table.to_polars()["latency_ns"]).to_numpy()
        address = first["latency_ns"].chunk(0).buffers()[1].address
        self.assertEqual(same.__array_interface__["data"][0], address)

    def test_table_outlives_its_result(self) -> None:
        arrow = farlane.parse(SMALL).run().commands.to_arrow()
        self.assertEqual(arrow.num_rows, 16)
        arrow.validate(full=True)

    def test_frames_of_pandas_and_polars(self) -> None:
        frame = self.table.to_pandas()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(list(frame.columns), self.table.columns)
        self.assertEqual(frame.operation.unique().tolist(), ["read"])
        stages = frame.loc[:, "host_software_ns":"interrupt_ns"].sum(axis=1)
        self.assertTrue((stages == frame.latency_ns).all())
        self.assertEqual(self.table.to_polars()["latency_ns"].sum(), frame.latency_ns.sum())
        self.assertEqual(self.table.units["latency_ns"], "ns")

    def test_table_without_rows(self) -> None:
        streams = farlane.parse(SMALL).run().streams
        self.assertEqual((len(streams), streams.to_arrow().num_rows), (0, 0))
        self.assertEqual(len(streams.to_pandas().columns), len(streams.columns))


if __name__ == "__main__":
    unittest.main()
