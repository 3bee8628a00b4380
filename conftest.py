"""Tests, modules of tests and examples that need torch are skipped where it is not installed."""

import doctest
from importlib.util import find_spec

import pytest

HAS_TORCH = find_spec("torch") is not None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Report a module that cannot be imported for want of torch as skipped."""
    report = yield
    return _for_want_of_torch(report, collector.path, 0, getattr(report, "call", None))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Report what failed for want of torch as skipped."""
    report = yield
    return _for_want_of_torch(report, item.path, item.reportinfo()[1] or 0, call)


def _for_want_of_torch(report, path, line, call):
    error = call.excinfo.value if call and call.excinfo else None
    if isinstance(error, doctest.UnexpectedException):
        error = error.exc_info[1]
    while error is not None and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, ModuleNotFoundError) and error.name == "torch" and not HAS_TORCH:
        report.outcome = "skipped"
        report.longrepr = (str(path), line, "torch is not installed")
    return report
