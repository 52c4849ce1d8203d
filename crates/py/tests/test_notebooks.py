"""Every notebook runs from its beginning to its end, in short form."""

import pathlib

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "notebooks"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs(path, monkeypatch, tmp_path):
    monkeypatch.setenv("LASTHOP_SHORT", "1")
    monkeypatch.setenv("MPLBACKEND", "agg")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "notebooks are kept without what they gave"
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    said = "".join(str(cell.get("outputs")) for cell in notebook.cells)
    assert "Traceback" not in said and len(said) > 200
