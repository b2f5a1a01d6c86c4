"""The site of this folder, built without network: `python -m sphinx -W --keep-going -b html docs docs/_build/html`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import rag_selectivity

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "_extensions"))
# Frameworks are imported for their adapters' docstrings: none may call home.
os.environ["RAGAS_DO_NOT_TRACK"] = "true"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"

project = "rag-selectivity"
author = "The rag-selectivity developers"
copyright = author
version = release = rag_selectivity.__version__
html_title = project

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "public_names",
    "navigation",
    "plain_files",
]
exclude_patterns = ["_build", "_extensions", "**.ipynb_checkpoints"]

# Pages are Markdown as code hosts show it: headings have the anchors that those give them.
myst_heading_anchors = 6
# A notebook is shown with the outputs that it has; tests run it.
nb_execution_mode = "off"

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what a parameter is
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
default_role = "py:obj"
# A parameter's name in backticks, such as `query`, is code; that fields of two classes have its name is no fault.
suppress_warnings = ["ref.python"]
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
