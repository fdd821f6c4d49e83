"""The line that shows the progress of a run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Progress = bool | Callable[[str], object] | None


def _show(state: str) -> None:
    sys.stderr.write(f"\r\x1b[K{state} …")
    sys.stderr.flush()


@contextlib.contextmanager
def shown(progress: Progress) -> Iterator[Callable[[str], object] | None]:
    """Return the callable for a state; clear the line at the end."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        try:
            yield _show
        finally:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
    elif callable(progress):
        yield progress
    else:
        kind = type(progress).__name__
        raise TypeError(f"progress: expected True, False or a callable, got {kind}")
