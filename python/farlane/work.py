"""Run points of a sweep's folder: what ``farlane work`` does, for workers with this package.

``python -m farlane.work DIR --only 0-9``
"""

from __future__ import annotations

import argparse
import sys

from farlane import _farlane
from farlane.errors import SimulationError


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m farlane.work", description=__doc__)
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--only", metavar="NUMBERS", help="points to run, such as 0-9,12")
    parser.add_argument("--point-timeout", metavar="TIME", help="maximum time for a point")
    options = parser.parse_args()
    try:
        _farlane.work(options.folder, options.only, options.point_timeout)
    except (SimulationError, ValueError) as error:
        sys.exit(f"farlane: {error}")


if __name__ == "__main__":
    main()
