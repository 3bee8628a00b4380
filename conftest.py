"""Number of workers for the tests, and tests skipped where an extra such as torch is missing.

With ``RECORDIO_TESTS_HIDE_OPENCV=1`` the package works as if OpenCV were not installed.
"""

import doctest
import gc
import os
import sys
import traceback
from importlib.util import find_spec

# Libraries do arithmetic on one thread in every worker and child: there are as many workers as
# processors, and threads of torch that wait for one another keep a processor busy.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine than about the code; doctests draw as well.
# Where CI is set, random tests draw the same examples every time: a change does not fail by chance.
untimed = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("untimed", **untimed)
settings.register_profile("new-examples", **untimed, derandomize=False)
settings.load_profile("untimed")

OPTIONAL = {"cv2", "torch", "ray", "pyarrow", "ml_dtypes"}
MISSING = {name for name in OPTIONAL if find_spec(name) is None}

if os.environ.get("RECORDIO_TESTS_HIDE_OPENCV"):  # from what is tested: tests compare with it
    from recordio.formats import by_opencv

    by_opencv.available = lambda: False


gc.disable()  # until the tests are collected, which are a million objects that all stay


def pytest_collection_finish():
    """Leave what was collected out of every later look for garbage: many tests ask for one."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config, items):
    """Draw three times as many examples where new ones are asked for: a night has the time."""
    if config.getoption("--hypothesis-profile", None) == "new-examples":
        for test in {getattr(item, "obj", None) for item in items}:
            if usual := getattr(test, "_hypothesis_internal_use_settings", None):
                more = settings(usual, max_examples=3 * usual.max_examples)
                test._hypothesis_internal_use_settings = more


@pytest.fixture(scope="module", autouse=True)
def _old_objects():
    """Leave out what earlier modules have kept, too: a look at it takes a fifth of a second."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Return one worker more than processors for `-n auto`: some tests wait."""
    return 1 + (os.cpu_count() or 1)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Report a module that cannot be imported for want of an extra as skipped.

    pytest does not ask when it imports the ``conftest.py`` of a folder: fixtures import extras.
    """
    report = yield
    call = getattr(report, "call", None)
    report = _for_want_of_extras(report, collector.path, 0, call)
    if report.skipped and call.excinfo:
        _forget_half_modules(call.excinfo.value)
    return report


def _forget_half_modules(error):
    """Drop the modules and packages whose import failed: pytest leaves them for others to find."""
    half = set()
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_name == "<module>":
                half.add(frame.f_code.co_filename)
        error = error.__cause__
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) in half:
            del sys.modules[name]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Report what failed for want of an extra as skipped."""
    report = yield
    return _for_want_of_extras(report, item.path, item.reportinfo()[1] or 0, call)


def _for_want_of_extras(report, path, line, call):
    error = call.excinfo.value if call and call.excinfo else None
    if isinstance(error, doctest.UnexpectedException):
        error = error.exc_info[1]
    while error is not None and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, ModuleNotFoundError) and error.name in MISSING:
        report.outcome = "skipped"
        report.longrepr = (str(path), line, f"{error.name} is not installed")
    return report
