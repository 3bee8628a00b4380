"""`TextSet` and `SentenceSet`: words to predict from the words before them; and their sources.

Words are integers, positions in a vocabulary.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from recordio.bytes.files import open_text
from recordio.keywords.checks import boolean, integer

from .sets import Batch, DataSource, MadeSet


def _words(name: str, values: Any) -> np.ndarray:
    words = np.asarray(values)
    if words.ndim != 1:
        raise ValueError(f"{name} has {words.ndim} axes: expected words one after another")
    if words.size and words.dtype.kind not in "iu":
        raise TypeError(f"{name} holds {words.dtype}: words are integers")
    return words.astype(np.int64)


class _Windows(MadeSet):
    """Contexts of a fixed length and the words that follow."""

    def __init__(self, which_set: str, context_size: int, recurrent: bool, words: Any) -> None:
        super().__init__(which_set, None, words)
        self.context_size = context_size
        self.recurrent: bool = boolean("recurrent", recurrent)

    @property
    def context_size(self) -> int:
        """Words before each target; `n_sample` follows when it is set."""
        return self._context_size

    @context_size.setter
    def context_size(self, size: int) -> None:
        size = integer("context_size", size, low=1)
        self.n_sample = self._rows(size)
        self._context_size = size

    @property
    def io_shapes(self) -> tuple[str, str]:
        """Orders of axes of inputs and targets: words by slot, and one word or as many."""
        return "bt", "bt" if self.recurrent else "b"

    def _make(self, batch: Batch, numbers: np.ndarray) -> None:
        window = self._windows(numbers)
        contexts = window[:, :-1]
        batch.inputs = self._put_classes(batch.inputs, "bt", np.ascontiguousarray(contexts))
        targets = window[:, 1:] if self.recurrent else window[:, -1]
        axes = self.io_shapes[1]
        batch.targets = self._put_classes(batch.targets, axes, np.ascontiguousarray(targets))

    def _rows(self, context_size: int) -> int:
        """Return the number of rows with contexts of that size."""
        raise TypeError(f"{type(self).__name__} is abstract")

    def _windows(self, numbers: np.ndarray) -> np.ndarray:
        """Return the context of every row and the word behind it, (rows, context_size + 1)."""
        raise TypeError(f"{type(self).__name__} is abstract")


class TextSet(_Windows):
    """Running text: every word is predicted from the words right before it.

    Parameters
    ----------
    data : array_like of int, (n,)
        The text.
    which_set : str
        "train", "valid" or "test".
    context_size : int
        Words before each target.
    recurrent : bool
        Targets are the words after every word of the context, instead of the one after all of it.
    words : sequence of str, optional
        The vocabulary, as `classes` of the views.

    Raises
    ------
    ValueError
        If the text is not longer than a context.

    Examples
    --------
    >>> text = TextSet([5, 6, 7, 8, 9], context_size=2)
    >>> batch = text.batch(2)
    >>> batch.inputs.input.tolist(), batch.targets.input.tolist(), text.n_sample
    ([[5, 6], [6, 7]], [7, 8], 3)
    >>> TextSet([5, 6, 7, 8], context_size=2, recurrent=True).index([0]).targets.input.tolist()
    [[6, 7]]
    """

    def __init__(
        self,
        data: Any,
        which_set: str = "train",
        context_size: int = 1,
        recurrent: bool = False,
        words: Sequence[str] | None = None,
    ) -> None:
        self.data: np.ndarray = _words("data", data)
        super().__init__(which_set, context_size, recurrent, words)

    @property
    def stride(self) -> int:
        """Rows from a batch to the one that continues it: all its targets have come then."""
        return self.context_size if self.recurrent else 1

    def _rows(self, context_size: int) -> int:
        rows = len(self.data) - context_size
        if rows < 1:
            raise ValueError(
                f"a text of {len(self.data)} words has none after a context of {context_size}"
            )
        return rows

    def _windows(self, numbers: np.ndarray) -> np.ndarray:
        return self.data[numbers[:, None] + np.arange(self.context_size + 1)]


class SentenceSet(_Windows):
    """Sentences: every word is predicted from the words before it in its sentence.

    Parameters
    ----------
    sentences : sequence of sequence of int
        Each with the word that ends it, if that is to be predicted; none empty.
    start_id : int
        Number of the word that fills contexts before the start of a sentence.
    which_set : str
        "train", "valid" or "test".
    context_size : int
        Words before each target.
    recurrent : bool
        Targets are the words after every word of the context, instead of the one after all of it.
    words : sequence of str, optional
        The vocabulary, as `classes` of the views.

    Attributes
    ----------
    starts, lengths : numpy.ndarray of int64, (sentences,)
        The row of the first word of each sentence, and how many it has.

    Raises
    ------
    ValueError
        Without sentences, and for an empty one.

    Examples
    --------
    >>> text = SentenceSet([[5, 6, 9], [7, 9]], start_id=0, context_size=2)
    >>> batch = text.batch(5)
    >>> batch.inputs.input.tolist(), batch.targets.input.tolist()
    ([[0, 0], [0, 5], [5, 6], [0, 0], [0, 7]], [5, 6, 9, 7, 9])
    """

    def __init__(
        self,
        sentences: Sequence[Any],
        start_id: int,
        which_set: str = "train",
        context_size: int = 5,
        recurrent: bool = False,
        words: Sequence[str] | None = None,
    ) -> None:
        parts = [_words(f"sentence {i}", sentence) for i, sentence in enumerate(sentences)]
        self.lengths: np.ndarray = np.array([len(part) for part in parts], np.int64)
        if not len(parts) or not self.lengths.all():
            raise ValueError("there must be sentences, and a word in each of them")
        self.data: np.ndarray = np.concatenate(parts)
        self.starts: np.ndarray = np.cumsum(self.lengths) - self.lengths
        self.start_id: int = integer("start_id", start_id)
        self._begin = np.repeat(self.starts, self.lengths)
        super().__init__(which_set, context_size, recurrent, words)

    def _rows(self, context_size: int) -> int:
        return len(self.data)

    def _windows(self, numbers: np.ndarray) -> np.ndarray:
        positions = numbers[:, None] + np.arange(-self.context_size, 1)
        before = positions < self._begin[numbers][:, None]
        return np.where(before, self.start_id, self.data[np.maximum(positions, 0)])


#: Stands for the end of a line.
END = "<eos>"


class TextSource(DataSource):
    r"""Up to three texts of one vocabulary, with a sentence a line.

    Parameters
    ----------
    train, valid, test : str, optional
        Names of files, UTF-8; with `string` the texts themselves.  There is no set without its
        text.
    context_size : int
        Words before each target; see `TextSet`.
    recurrent : bool
        Targets are the words after every word of the context.
    data_path : str or os.PathLike
        Folder of the files.
    string : bool
        Whether the texts themselves are given instead of their files.

    Attributes
    ----------
    vocab : dict of str to int
        Number of every word, in the order in which they first appear.

    Raises
    ------
    OSError
        If a file cannot be read.
    ValueError
        If a text is not longer than a context.

    Notes
    -----
    Words are separated by white space; the end of a line is the word ``<eos>``.

    Examples
    --------
    >>> source = TextSource("the cat sat\n", "the cat ran\n", context_size=2, string=True)
    >>> source.vocabulary()
    ['the', 'cat', 'sat', '<eos>', 'ran']
    >>> batch = source.train_set.batch(2)
    >>> batch.inputs.forward_get("bt").tolist(), batch.targets.forward_get("b").tolist()
    ([[0, 1], [1, 2]], [2, 3])
    """

    name = "text"

    def __init__(
        self,
        train: str | None = None,
        valid: str | None = None,
        test: str | None = None,
        context_size: int = 1,
        recurrent: bool = False,
        data_path: str | os.PathLike[str] = "",
        string: bool = False,
    ) -> None:
        texts: dict[str, list[str]] = {}
        for which, text in (("train", train), ("valid", valid), ("test", test)):
            if text is None:
                continue
            with io.StringIO(text) if string else open_text(os.path.join(data_path, text)) as lines:
                whole = lines.read()
            texts[which] = whole.replace("\n", f" {END} ").split()
        self.vocab: dict[str, int] = {
            word: i for i, word in enumerate(dict.fromkeys(chain(*texts.values())))
        }
        self._counts = Counter(chain(texts.get("train", ()), texts.get("valid", ())))
        sets: dict[str, Any] = {}
        for which, words in texts.items():
            numbers = [self.vocab[word] for word in words]
            sets[f"{which}_set"] = TextSet(numbers, which, context_size, recurrent, [*self.vocab])
        super().__init__(**sets)

    @property
    def classes(self) -> list[str]:
        """The words, each at the position of its number."""
        return list(self.vocab)

    def vocabulary(self) -> list[str]:
        """Return the words, each at the position of its number."""
        return self.classes

    def vocabulary_size(self) -> int:
        """Return the number of different words."""
        return len(self.vocab)

    def word_frequency(self) -> list[int]:
        """Return the number of times that each word occurs in the train and the valid text."""
        return [self._counts[word] for word in self.vocab]


class PennTreeBank(TextSource):
    """The words of the Penn Treebank as they are used for language models.

    Parameters
    ----------
    data_path : str or os.PathLike
        Folder with ``ptb.train.txt``, ``ptb.valid.txt`` and ``ptb.test.txt``.
    context_size, recurrent
        As for `TextSource`.
    train_file, valid_file, test_file : str
        Names of the files.
    """

    name = "PennTreeBank"

    def __init__(
        self,
        data_path: str | os.PathLike[str],
        context_size: int = 1,
        recurrent: bool = False,
        train_file: str = "ptb.train.txt",
        valid_file: str = "ptb.valid.txt",
        test_file: str = "ptb.test.txt",
    ) -> None:
        super().__init__(train_file, valid_file, test_file, context_size, recurrent, data_path)
