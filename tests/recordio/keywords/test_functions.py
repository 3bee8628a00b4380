"""Functions with checked keywords: their errors, signatures and documentation."""

import inspect
import pickle
from functools import partial
from typing import Annotated

import pytest

import recordio
from recordio.keywords.checks import choice, integer
from recordio.keywords.functions import checked, options_of
from recordio.keywords.options import option

Seed = Annotated[int, option(kind="int", text="Chance.", check=partial(integer, low=0))]
By = Annotated[str, option(kind="str", text="How.", check=partial(choice, allowed=("a", "b")))]


@checked
def drawn(path: Annotated[str, option(kind="path")], seed: Seed = 0, *, by: By = "a") -> tuple:
    """Draw something.

    Parameters
    ----------
    {parameters}
    """
    return path, seed, by


def test_arguments_are_checked_and_passed_on():
    assert drawn("x") == ("x", 0, "a")
    assert drawn("x", "3", by="b") == drawn(path="x", seed=3, by="b") == ("x", 3, "b")


@pytest.mark.parametrize(
    ("values", "keywords", "error", "said"),
    [
        ((), {}, TypeError, r"^drawn\(\) needs path$"),
        (
            ("x",),
            {"sede": 1},
            TypeError,
            r"^drawn\(\) has .* 'sede'; did you mean 'seed'",
        ),
        (("x",), {"random_state": 1}, TypeError, "did you mean 'seed'"),
        (("x", 1, "a"), {}, TypeError, "takes 2 arguments by position, not 3"),
        (("x", 1), {"seed": 1}, TypeError, "two values for 'seed'"),
        (("x", -1), {}, ValueError, "seed=-1: expected an integer of at least 0"),
        (("x",), {"by": "c"}, ValueError, "by='c': expected one of 'a', 'b'"),
    ],
)
def test_wrong_arguments_are_named(values, keywords, error, said):
    with pytest.raises(error, match=said):
        drawn(*values, **keywords)


def test_signature_and_documentation_are_those_of_a_plain_function():
    assert str(inspect.signature(drawn)) == "(path: str, seed: int = 0, *, by: str = 'a') -> tuple"
    assert "seed : int\n    Chance.\n" in inspect.getdoc(drawn)
    assert list(options_of(drawn)) == ["path", "seed", "by"]
    assert pickle.loads(pickle.dumps(recordio.shuffle)) is recordio.shuffle


def test_functions_over_packs_check_before_they_read(tmp_path):
    missing, out = tmp_path / "no", tmp_path / "out"
    for function in (recordio.shuffle, recordio.sort, recordio.sample, recordio.filter):
        with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) .*'skip_errors'"):
            function(missing, out, skip_error=True)
    with pytest.raises(ValueError, match="fraction=2: expected more than 0"):
        recordio.sample(missing, out, fraction=2)
