"""Tests and examples that need torch are skipped where it is not installed."""

import doctest
from importlib.util import find_spec

import pytest

HAS_TORCH = find_spec("torch") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Report what failed for want of torch as skipped."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, doctest.UnexpectedException):
        error = error.exc_info[1]
    while error is not None and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, ModuleNotFoundError) and error.name == "torch" and not HAS_TORCH:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.reportinfo()[1] or 0, "torch is not installed")
    return report
