"""The outputs of the notebooks of the site: the notebooks are run, and what their cells show is kept in them.

python tests/docs/notebook_outputs.py --write     # run them again and keep what their cells show now
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

import cige

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))
KEPT = ("image/svg+xml", "text/plain")  # of what a cell shows in several forms, the first


def read(name: str) -> Any:
    """A notebook as it is in the repository."""
    return nbformat.read(FOLDER / name, as_version=4)


def executed(name: str, folder: Path) -> Any:
    """A notebook after it ran in a folder, with no more than what is kept of its outputs: no warnings, no counts."""
    os.environ |= {"PYTHONPATH": str(Path(cige.__file__).parents[1]), "OMP_NUM_THREADS": "1"}  # of the kernel
    notebook = read(name)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [_kept(output) for output in _joined(cell.outputs)]
    return notebook


def _joined(outputs: list[Any]) -> list[Any]:
    """Outputs without warnings; what a cell prints can come in several pieces."""
    joined: list[Any] = []
    for output in outputs:
        if output.output_type != "stream":
            joined.append(output)
        elif output.name == "stdout" and joined and joined[-1].output_type == "stream":
            joined[-1].text += output.text
        elif output.name == "stdout":
            joined.append(output)
    return joined


def _kept(output: Any) -> Any:
    if output.output_type == "stream":
        return nbformat.v4.new_output("stream", name=output.name, text=output.text)
    form = next(form for form in KEPT if form in output.data)
    return nbformat.v4.new_output("display_data", data={form: output.data[form]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the outputs in the notebooks")
    if not parser.parse_args().write:
        parser.error("expected --write")
    for name in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(executed(name, Path(folder)), FOLDER / name)
        print(f"wrote {FOLDER / name}")


if __name__ == "__main__":
    main()
