"""Published experiments."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from farlane import _farlane


def reproduce(publication: str, only: Iterable[str] = ()) -> dict[str, Any]:
    """Simulate a published experiment, or ``only`` some of its parts.

    ``publication`` is nvme-tsn, expether, tsn-ports or tsn-vm. Returns the document of
    ``farlane reproduce --json``, with published and simulated figures.

    >>> reproduce("tsn-ports", only=["gate"])
    Traceback (most recent call last):
    ...
    ValueError: unknown part 'gate': expected one of priority, gates, shapers, preemption, cyclic
    """
    if isinstance(only, str):
        raise TypeError(f"only: expected a list of parts, got the text '{only}'")
    document: dict[str, Any] = json.loads(_farlane.reproduce(publication, list(only)))
    return document
