"""What the tests of the package share."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = ROOT / "target" / "debug" / "farlane"
SMALL = '[workload]\nrw = "randread"\nsize = "64KiB"\n'


def program(*arguments: object) -> str:
    """Run the program and return its standard output."""
    command = [PROGRAM, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def plan(name: str) -> str:
    """Return the path of an example plan."""
    return str(ROOT / "plans" / f"{name}.toml")
