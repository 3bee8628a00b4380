"""Keywords of other libraries, and the ones of ours that are named for them."""

import pytest

from recordio.keywords.checks import did_you_mean, unknown_keyword
from recordio.keywords.synonyms import SYNONYMS, elsewhere, synonym


def test_a_synonym_wins_over_a_name_that_looks_similar():
    known = ["num_ops", "num_parts", "preprocess_threads"]
    assert did_you_mean("num_workers", known) == "did you mean 'num_ops'?"
    assert str(unknown_keyword("F", "num_workers", known)) == (
        "F() has no parameter 'num_workers'; did you mean 'preprocess_threads'? It is a number of "
        "threads, and no process is started"
    )


def test_the_first_keyword_that_the_callee_has_is_named():
    assert "'last_batch_handle'?" in synonym("drop_last", ["round_batch", "last_batch_handle"])
    assert "'round_batch'?" in synonym("drop_last", ["round_batch", "shuffle"])


def test_a_keyword_of_the_same_meaning_needs_no_sentence():
    assert synonym("batchsize", ["batch_size"]) == "did you mean 'batch_size'?"


def test_a_callee_without_such_a_keyword_says_where_that_is_done():
    error = unknown_keyword("F", "persistent_workers", ["persistence"])
    assert str(error).partition("; ")[2] == elsewhere("persistent_workers") != ""


def test_names_that_are_no_synonyms_get_the_closest():
    assert synonym("shuffel", ["shuffle"]) == elsewhere("shuffel") == ""
    assert "did you mean 'shuffle'?" in str(unknown_keyword("F", "shuffel", ["shuffle"]))


@pytest.mark.parametrize("meanings", SYNONYMS.values(), ids=SYNONYMS)
def test_sentences_fit_behind_a_question(meanings):
    for target, difference in meanings.items():
        assert not difference.endswith(".")
        assert target or difference[:1].islower()
