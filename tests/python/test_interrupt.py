"""Ctrl-C, progress and threads."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
import unittest

from support import SMALL

import farlane

# Prints the states until a signal ends the simulations, then what is finished.
CHILD = f"""
import farlane
plan = farlane.parse({SMALL!r})
try:
    plan.{{call}}progress=lambda state: print(state, flush=True))
except farlane.Interrupted as error:
    rows = error.result.commands.to_pandas()
    print("finished", error.result.interrupted, len(rows.groupby(["seed", "set"], observed=True)))
"""


class Interrupt(unittest.TestCase):
    def finished(self, call: str) -> list[str]:
        """Interrupt a child when some simulations are done."""
        command = [sys.executable, "-c", CHILD.format(call=call)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout
            for state in child.stdout:
                if " simulations done" in state and ", 0 of" not in state:
                    child.send_signal(signal.SIGINT)
                    break
            *_, last = child.stdout
        self.assertEqual(child.returncode, 0)
        return last.split()

    def test_interrupted_run_has_the_finished_seeds(self) -> None:
        word, interrupted, seeds = self.finished("run(runs=10_000, ")
        self.assertEqual((word, interrupted), ("finished", "True"))
        self.assertTrue(0 < int(seeds) < 10_000, seeds)

    def test_interrupted_sweep_has_the_finished_combinations(self) -> None:
        call = 'sweep({"link.rate": ["1G", "10G"], "seed": range(500)}, '
        word, interrupted, combinations = self.finished(call)
        self.assertEqual((word, interrupted), ("finished", "True"))
        self.assertTrue(0 < int(combinations) < 1_000, combinations)

    def test_other_threads_run_during_a_simulation(self) -> None:
        # Programs in the background of a shell ignore the signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        begun = threading.Event()

        def interrupt() -> None:
            # Runs only if the simulation has released the GIL.
            begun.wait()
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt, daemon=True)
        thread.start()
        plan = farlane.parse(SMALL)
        with self.assertRaises(farlane.Interrupted) as caught:
            plan.run(runs=10_000, progress=lambda state: begun.set())
        thread.join()
        self.assertIsInstance(caught.exception, KeyboardInterrupt)
        self.assertIsInstance(caught.exception.result, farlane.Result)

    def test_simulations_of_several_threads(self) -> None:
        results: list[int] = []
        plan = farlane.parse(SMALL)
        run = lambda: results.append(len(plan.run().commands))  # noqa: E731
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [16] * 4)

    def test_progress_is_a_line_on_standard_error(self) -> None:
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            farlane.parse(SMALL).run(runs=100, progress=True)
        self.assertTrue(errors.getvalue().endswith("\r\x1b[K"))


if __name__ == "__main__":
    unittest.main()
