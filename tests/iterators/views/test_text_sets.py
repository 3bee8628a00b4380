"""Words from the words before them, and the samplers that read them as sequences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators import ClassView, DataView
from iterators.views import (
    DataSet,
    DataSource,
    RandomSampler,
    Sampler,
    SentenceSampler,
    SentenceSet,
    ShuffleSampler,
    TextSampler,
    TextSet,
)

sentences = st.lists(st.lists(st.integers(1, 50), min_size=1, max_size=6), min_size=1, max_size=12)


def shown(batch):
    return batch.inputs.input.tolist(), batch.targets.input.tolist()


@given(n=st.integers(2, 30), context=st.integers(1, 5), recurrent=st.booleans(), data=st.data())
def test_every_word_of_a_text_from_those_before_it(n, context, recurrent, data):
    words = np.arange(100, 100 + n)
    if n <= context:
        with pytest.raises(ValueError, match="after a context"):
            TextSet(words, context_size=context)
        return
    text = TextSet(words, "valid", context, recurrent)
    assert text.n_sample == len(text) == n - context and not text.is_train
    assert text.io_shapes == ("bt", "bt" if recurrent else "b")
    ids = data.draw(st.lists(st.integers(0, text.n_sample - 1), max_size=8))
    inputs, targets = shown(batch := text.index(ids))
    for row, context_words, target in zip(ids, inputs, targets, strict=True):
        behind = words[row + 1 : row + 1 + context].tolist()
        assert context_words == words[row : row + context].tolist()
        assert target == (behind if recurrent else behind[-1])
    assert batch.which_set == "valid" and batch.epoch_size == text.n_sample


@given(sentences=sentences, context=st.integers(1, 4), recurrent=st.booleans())
def test_every_word_of_a_sentence_from_those_before_it(sentences, context, recurrent):
    text = SentenceSet(sentences, 0, context_size=context, recurrent=recurrent)
    inputs, targets = shown(text.batch(text.n_sample))
    row = 0
    for sentence in sentences:
        padded = [0] * context + list(sentence)
        for place in range(len(sentence)):
            assert inputs[row] == padded[place : place + context]
            behind = padded[place + 1 : place + 1 + context]
            assert targets[row] == (behind if recurrent else behind[-1])
            row += 1
    assert row == text.n_sample == text.lengths.sum()
    assert text.starts.tolist() == [0, *np.cumsum(text.lengths)[:-1]]


def test_batches_are_sets_of_views_with_the_vocabulary():
    text = TextSet([1, 0, 1, 2], words=["a", "b", "c"])
    batch = text.sub(1, 3)
    assert isinstance(batch.inputs, ClassView) and batch.targets.classes == ["a", "b", "c"]
    again = text.sub(0, 1, out=batch)
    assert again is batch and shown(again) == ([[1]], [0])
    assert shown(text.index([True, False, True])) == ([[1], [1]], [0, 2])
    assert text.batch(99).inputs.n_sample() == 3
    other = text.index([0], out=DataSet("test", DataView("bf", np.zeros((1, 1)))).batch(1))
    assert isinstance(other.inputs, ClassView)


def test_the_number_of_rows_follows_the_context_size():
    text = TextSet(np.arange(200), context_size=10, recurrent=True)
    text.context_size = 1
    assert text.n_sample == len(text) == text.batch(999).epoch_size == 199
    assert text.index([198]).targets.input.tolist() == [[199]]
    for wrong in (0, 200, 1.5):
        with pytest.raises((TypeError, ValueError), match="context"):
            text.context_size = wrong
        assert (text.context_size, text.n_sample) == (1, 199)
    sentences = SentenceSet([[5, 6], [7]], 0, context_size=2)
    sentences.context_size = 1
    assert sentences.n_sample == 3 and shown(sentences.batch(3))[0] == [[0], [5], [0]]


@pytest.mark.parametrize(
    ("make", "error", "word"),
    [
        (lambda: TextSet([[1, 2]]), ValueError, "2 axes"),
        (lambda: TextSet([1.5, 2.0]), TypeError, "integers"),
        (lambda: TextSet([1, 2], context_size=0), ValueError, "context_size"),
        (lambda: SentenceSet([], 0), ValueError, "must be sentences"),
        (lambda: SentenceSet([[1], []], 0), ValueError, "a word in each"),
        (lambda: SentenceSet([[1], [2.5]], 0), TypeError, "sentence 1"),
        (lambda: TextSet([1, 2]).sub(0, 5), IndexError, "do not exist"),
        (lambda: TextSet([1, 2]).index([1]), IndexError, "does not exist"),
        (lambda: TextSet([1, 2]).preprocess(), TypeError, "preprocess those"),
        (lambda: TextSampler(4).sample_epoch(TextSet([1, 2])), ValueError, "4 streams"),
        (lambda: TextSampler(1).sample_epoch(DataSet()), TypeError, "TextSet"),
        (lambda: SentenceSampler(1).sample_epoch(TextSet([1, 2])), TypeError, "SentenceSet"),
    ],
)
def test_what_is_refused(make, error, word):
    with pytest.raises(error, match=word):
        make()


@pytest.mark.parametrize("kind", [Sampler, ShuffleSampler, RandomSampler])
def test_the_samplers_of_all_sets_take_texts(kind):
    text = TextSet(np.arange(20), context_size=3)
    seen = []
    for batch, _, size in kind(4).sample_epoch(DataSource(text)):
        assert batch.targets.input.tolist() == (batch.indices + 3).tolist() and size == 17
        seen += batch.indices.tolist()
    assert len(seen) == (20 if kind is RandomSampler else 17)


# -- streams ----------------------------------------------------------------------------------


@given(n=st.integers(2, 60), size=st.integers(1, 6), context=st.integers(1, 4), data=st.data())
def test_rows_of_a_stream_continue_one_another(n, size, context, data):
    recurrent = data.draw(st.booleans())
    stride = context if recurrent else 1
    targets = n - 1 if recurrent else n - context
    if n <= context:
        return
    text = TextSet(np.arange(n), context_size=context, recurrent=recurrent)
    sampler = TextSampler(size)
    if targets // size < stride:
        with pytest.raises(ValueError, match="cannot be cut"):
            sampler.sample_epoch(text)
        return
    for _ in range(2):
        last, words = None, []
        for batch, _, _ in sampler.sample_epoch(text):
            assert batch.sequence_start == (last is None) and len(batch.indices) == size
            if last is not None:
                assert (batch.inputs.input == last + stride).all()
            last = batch.inputs.input
            words += batch.targets.input.ravel().tolist()
        assert len(set(words)) == len(words), "no word is a target twice"
        assert len(words) == targets // size // stride * stride * size


def test_streams_end_with_the_text():
    """The last row of the last stream ends with the last word."""
    text = TextSet(np.arange(121), context_size=20, recurrent=True)
    batches = [batch for batch, _, _ in TextSampler(3).sample_epoch(text)]
    assert [batch.indices.tolist() for batch in batches] == [[0, 40, 80], [20, 60, 100]]
    assert batches[1].targets.input[:, -1].tolist() == [40, 80, 120]
    once = TextSet(np.arange(61), context_size=20, recurrent=True)
    (batch,) = (batch for batch, _, _ in TextSampler(3).sample_epoch(once))
    assert batch.targets.input[:, -1].tolist() == [20, 40, 60]
    with pytest.raises(ValueError, match="cannot be cut into 3 streams"):
        TextSampler(3).sample_epoch(TextSet(np.arange(60), context_size=20, recurrent=True))


def test_streams_keep_their_place_between_epochs():
    text = TextSet(np.arange(13))
    sampler = TextSampler(3, epoch_size=6)
    first = [batch.indices.tolist() for batch, _, _ in sampler.sample_epoch(text)]
    state = sampler.state_dict()
    second = [batch.indices.tolist() for batch, _, _ in sampler.sample_epoch(text)]
    assert first == [[0, 4, 8], [1, 5, 9]] and second == [[2, 6, 10], [3, 7, 11]]
    starts = [batch.sequence_start for batch, _, _ in sampler.sample_epoch(text)]
    assert starts == [True, False]
    other = TextSampler(3, epoch_size=6)
    other.load_state_dict(state)
    assert [batch.indices.tolist() for batch, _, _ in other.sample_epoch(text)] == second


# -- sentences --------------------------------------------------------------------------------


@given(sentences=sentences, size=st.integers(1, 5), seed=st.integers(0, 5))
def test_sentences_of_one_length_are_read_word_by_word(sentences, size, seed):
    text = SentenceSet(sentences, 0, context_size=1)
    sampler = SentenceSampler(size, random_seed=seed)
    for _ in range(2):
        rows, groups = [], []
        for batch, _, epoch_size in sampler.sample_epoch(text):
            assert epoch_size == text.n_sample
            if batch.sequence_start:
                groups.append([])
                assert np.isin(batch.indices, text.starts).all()
            else:
                assert (batch.indices == groups[-1][-1] + 1).all()
            groups[-1].append(batch.indices)
            rows += batch.indices.tolist()
        assert sorted(rows) == list(range(text.n_sample)), "every word once"
        for group in groups:
            lengths = {int(text.lengths[text.starts == row][0]) for row in group[0]}
            assert lengths == {len(group)} and len(group[0]) <= size
        order = [len(group) for group in groups]
        changes = sum(a != b for a, b in zip(order, order[1:], strict=False))
        assert changes == len(set(order)) - 1, "length after length"


def test_an_epoch_of_sentences_ends_with_a_sentence():
    text = SentenceSet([[1, 2, 3, 4], [5, 6, 7, 8], [9, 9, 9, 9]], 0, context_size=1)
    sampler = SentenceSampler(1, epoch_size=2)
    for _ in range(3):
        draws = list(sampler.sample_epoch(text))
        assert len(draws) == 4 and [seen for _, seen, _ in draws] == [1, 2, 2, 2]
        assert [batch.sequence_start for batch, _, _ in draws] == [True, False, False, False]


def test_orders_of_sentences_follow_from_the_seed_and_the_turn():
    text = SentenceSet([[i] * (1 + i % 3) for i in range(30)], 0)

    def epoch(sampler):
        return [batch.indices.tolist() for batch, _, _ in sampler.sample_epoch(text)]

    one, two, other = SentenceSampler(4), SentenceSampler(4), SentenceSampler(4, random_seed=3)
    first = [epoch(one), epoch(one)]
    assert first == [epoch(two), epoch(two)] and first[0] != first[1] and first[0] != epoch(other)
    three = SentenceSampler(4)
    epoch(three)
    resumed = SentenceSampler(4)
    resumed.load_state_dict(three.state_dict())
    assert epoch(resumed) == first[1]
