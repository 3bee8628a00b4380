"""Data sources of running text: `TextSource`, and `PennTreeBank` with its names of files."""

from __future__ import annotations

import io
import os
from collections import Counter
from itertools import chain
from typing import Any

from recordio.bytes.files import open_text

from .sets import DataSource
from .text_sets import TextSet

__all__ = ["PennTreeBank", "TextSource"]

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
        Whether the texts are given, and not their files.

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
    Words are what stands between spaces; the end of a line is the word ``<eos>``.

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
        self.vocab = {word: i for i, word in enumerate(dict.fromkeys(chain(*texts.values())))}
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
        """Return the number of times that each word stands in the train and the valid text."""
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
        Other names of the files.
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
