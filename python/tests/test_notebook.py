"""The notebook runs from its first cell to its last, and shows its pictures."""

import json
import pathlib

import nbclient
import nbformat
from conftest import program

NOTEBOOK = pathlib.Path(__file__).parent.parent / "notebooks" / "adsl.ipynb"


def test_the_notebook_runs_and_its_pictures_and_verdict_are_there(journal, monkeypatch):
    monkeypatch.setenv("BUDGET", "16 trials")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        cell.pop("outputs", None)
        if cell.cell_type == "code":
            cell["outputs"] = []
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == 4 and all(len(output["data"]["image/png"]) > 4000 for output in pictures)
    said = "".join(output.get("text", "") for output in outputs)
    assert "Nothing can be claimed" in said
    assert json.loads(program("report", "last", "--json"))["verdict"]["headline"] in said


def test_what_the_repository_shows_of_it_was_run():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    assert sum("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs) == 4
