"""The reference of the Python package as pages in FOLDER, by pdoc: python3 tools/python_api.py FOLDER

Types of the extension module are those of its stubs (crates/py/python/lasthop/_lasthop.pyi).
"""

import os
import pathlib
import sys

PACKAGE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "python-package"
sys.path.insert(0, str(PACKAGE.resolve()))

import pdoc  # noqa: E402
from pdoc import doc_pyi, docstrings  # noqa: E402

# The package shows the extension's classes as its own, and has no stubs beside them.
found = doc_pyi.find_stub_file
doc_pyi.find_stub_file = lambda name: found("lasthop._lasthop" if name == "lasthop" else name)
# The tables of a report name their columns as arguments are named.
docstrings.GOOGLE_LIST_SECTIONS.append("Columns")
pdoc.render.configure(docformat="google", show_source=False, footer_text="Lasthop")
pdoc.pdoc("lasthop", output_directory=pathlib.Path(sys.argv[1]))
