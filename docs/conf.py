"""How the site is made; `make docs` builds it.

Everything that a page needs lies beside it: no font, script or picture is fetched from elsewhere,
so that the site, its search included, works from a folder without a network.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nearer

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]  # extensions; examples

# names of types that are shown as they are written
ALIASES = (
    "Answers", "ArrayLike", "Askable", "Strategy", "Floats", "Map", "NDArray",
    "Objects", "Oracle", "Points", "Questions", "Ranking", "Said", "Seed",
)  # fmt: skip

project = "nearer"
author = "The nearer developers"
project_copyright = author
version = release = nearer.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "reference",  # docs/_ext: a page for every public name
    "mathml",  # docs/_ext: formulas without a script
]
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.codeobj.json"]
highlight_language = "none"  # a block says what it is
default_role = "py:obj"  # `name` in a docstring is the name's page where it has one
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # the gallery's functions cannot be pickled

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ALIASES}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples" / "gallery")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "image_scrapers": ("pictures.drawn",),
    "reset_modules": ("pictures.begin",),
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"matplotlib|NoneType",
    "abort_on_example_error": True,
    "run_stale_examples": True,  # an example that stayed the same may draw otherwise
    "parallel": 2,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "within_subsection_order": "pictures.InOrder",
    "min_reported_time": 0,
    "show_memory": False,
    "write_computation_times": False,  # its page loads scripts from elsewhere
    "thumbnail_size": (480, 336),
    "backreferences_dir": None,
    "nested_sections": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"nearer {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_sidebars = {"index": [], "start": [], "changelog": [], "security": []}
html_theme_options = {
    "logo": {
        "text": "nearer",
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
        "alt_text": "nearer, front page",
    },
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button-field"],
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_prev_next": True,
}
