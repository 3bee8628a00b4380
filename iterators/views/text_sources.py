"""Data sources of running text: `TextSource`, and `PennTreeBank` with its names of files."""

from __future__ import annotations

import io
import itertools
import os
from collections import Counter

from recordio.files import open_text

from .sets import DataSource
from .text_sets import TextSet

__all__ = ["PennTreeBank", "TextSource"]

#: Stands at the end of every line.
END = "<eos>"


class TextSource(DataSource):
    """Three texts of one vocabulary, with a sentence a line.

    Parameters
    ----------
    data_path : str or os.PathLike
        Folder of the files.
    context_size : int
        Words before each target; see `TextSet`.
    recurrent : bool
        Targets are the words behind every word of the context.
    train_file, valid_file, test_file : str
        Names of the files, UTF-8; with `string` the texts themselves.
    string : bool
        Whether they are the texts.

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
    Words are what stands between spaces; every line ends in the word ``<eos>``.

    Examples
    --------
    >>> source = TextSource(None, 2, train_file="the cat sat", valid_file="the cat ran",
    ...                     test_file="a cat sat", string=True)
    >>> source.vocabulary()
    ['the', 'cat', 'sat', '<eos>', 'ran', 'a']
    >>> batch = source.train_set.batch(2)
    >>> batch.inputs.forward_get("bt").tolist(), batch.targets.forward_get("b").tolist()
    ([[0, 1], [1, 2]], [2, 3])
    """

    name = "text"

    def __init__(
        self,
        data_path: str | os.PathLike[str] | None,
        context_size: int = 1,
        recurrent: bool = False,
        train_file: str = "train_data.txt",
        valid_file: str = "valid_data.txt",
        test_file: str = "test_data.txt",
        string: bool = False,
    ) -> None:
        if data_path is None and not string:
            raise ValueError("data_path=None: say which folder the files are in, or string=True")
        texts = []
        for text in (train_file, valid_file, test_file):
            with (
                io.StringIO(text) if string else open_text(os.path.join(data_path or "", text)) as f
            ):
                texts.append([word for line in f for word in (*line.split(), END)])
        self.vocab = {word: i for i, word in enumerate(dict.fromkeys(itertools.chain(*texts)))}
        self._counts = Counter(texts[0] + texts[1])
        classes = list(self.vocab)
        sets = []
        for which, words in zip(("train", "valid", "test"), texts, strict=True):
            numbers = [self.vocab[word] for word in words]
            sets.append(TextSet(numbers, which, context_size, recurrent, classes))
        super().__init__(*sets)

    @property
    def classes(self) -> list[str]:
        """The words, each at the place of its number."""
        return list(self.vocab)

    def vocabulary(self) -> list[str]:
        """The words, each at the place of its number."""
        return self.classes

    def vocabulary_size(self) -> int:
        """Number of different words."""
        return len(self.vocab)

    def word_frequency(self) -> list[int]:
        """How often each word stands in the train and the valid text, by its number."""
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
        super().__init__(data_path, context_size, recurrent, train_file, valid_file, test_file)
