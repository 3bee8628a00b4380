"""Settings with which Sphinx builds these pages: ``make docs``."""

import os
import sys
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE / "_extensions")]

project = "recordio + iterators"
author = "the contributors"
copyright = author
version = release = version_of("recordio-iterators")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "commands",
    "keywords",
    "pictures",
    "ratios",
    "tree",
    "sphinx_llms_txt",
]
exclude_patterns = ["_build", "_pictures/*.md"]
templates_path = ["_templates"]
# `name` in a docstring is a link where there is such a name, and code where there is none.
default_role = "py:obj"
nitpicky = False

autosummary_generate = True
# Names that differ in their case alone, for file systems that do not tell them apart.
autosummary_filename_map = {
    "iterators.converter": "iterators.converter-function",
    "iterators.samples.minibatches": "iterators.samples.minibatches-function",
    "recordio.shard": "recordio.shard-function",
}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
# Where torch is not installed its names are stand-ins: the pages are the same.
autodoc_mock_imports = [] if find_spec("torch") else ["torch"]
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = True  # llms.txt is made of the sources
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": project},
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "footer_start": ["version"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
if switcher := os.environ.get("DOCS_SWITCHER"):  # of a site with several versions: .ci/site.py
    html_theme_options["switcher"] = {
        "json_url": switcher,
        "version_match": os.environ.get("DOCS_VERSION", version),
    }
    html_theme_options["navbar_end"] = ["version-switcher", "theme-switcher"]

# A list of the pages for programs that read: llms.txt, and all pages as one text.
llms_txt_title = project
llms_txt_summary = (
    "MXNet record files, image folders, archives and text as shuffled, augmented batches."
)
llms_txt_exclude = ["reference/api/generated/*", "genindex", "search"]
