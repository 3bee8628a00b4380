"""The scripts of this folder import MXNet: `tests/iterators/compat/test_scripts.py` runs them."""

collect_ignore_glob = ["*.py"]
