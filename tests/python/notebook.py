"""Runs notebooks, which have no outputs in the tree."""

import pathlib
import sys

import nbclient
import nbformat

for name in sys.argv[1:]:
    path = pathlib.Path(name)
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if any(cell.outputs or cell.execution_count for cell in code):
        sys.exit(f"{name}: clear its outputs")
    resources = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(notebook, timeout=60, resources=resources).execute()
    if not any("image/png" in output.get("data", {}) for cell in code for output in cell.outputs):
        sys.exit(f"{name} has no plot")
