"""Simulations of plans, and their results as Arrow tables.

>>> import farlane
>>> plan = farlane.parse('''
... [workload]
... rw = "randread"
... size = "1MiB"
... ''')
>>> result = plan.set({"link.rate": "10G"}).run()
>>> len(result.commands)
256

``docs/python.md`` is the guide, ``docs/plan.md`` describes the keys of plans, and
``docs/results.md`` the tables.
"""

from farlane._farlane import VERSION as __version__
from farlane.errors import Interrupted, PlanError, SimulationError
from farlane.papers import reproduce
from farlane.plan import Plan, load, parse
from farlane.reading import read_samples, read_trace
from farlane.results import Result, Sweep
from farlane.table import Table

__all__ = [
    "Interrupted",
    "Plan",
    "PlanError",
    "Result",
    "SimulationError",
    "Sweep",
    "Table",
    "__version__",
    "load",
    "parse",
    "read_samples",
    "read_trace",
    "reproduce",
]
