"""Run points of a sweep's folder: what ``farlane work`` does, for workers with this package.

``python -m farlane.work DIR --only 0-9``
"""

from __future__ import annotations

import argparse
import sys

from farlane import _farlane
from farlane.errors import SimulationError


def arguments(module: str, text: str | None) -> argparse.ArgumentParser:
    """Return the parser of a command on a folder: its module and description."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=text)
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--point-timeout", metavar="TIME", help="maximum time for a point")
    return parser


def main() -> None:
    """Run the command."""
    parser = arguments("farlane.work", __doc__)
    parser.add_argument("--only", metavar="NUMBERS", help="points to run, such as 0-9,12")
    options = parser.parse_args()
    try:
        _farlane.work(options.folder, options.only, options.point_timeout)
    except (SimulationError, ValueError) as error:
        sys.exit(f"farlane: {error}")


if __name__ == "__main__":
    main()
