"""Runs the examples of every module, and of the guide."""

import doctest
import importlib
import pathlib
import pkgutil
import sys

import farlane

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
modules = [farlane]
for found in pkgutil.iter_modules(farlane.__path__):
    modules.append(importlib.import_module(f"farlane.{found.name}"))
results = [doctest.testmod(module, optionflags=OPTIONS) for module in modules]
guide = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
results.append(doctest.testfile(str(guide), module_relative=False, optionflags=OPTIONS))
if not results[-1].attempted:
    sys.exit("docs/python.md has no example")
sys.exit(any(result.failed for result in results))
