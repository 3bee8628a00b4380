"""The keywords that all our providers accept, each with its meaning and its check.

What is special to one kind of provider stands with it, in a family that adds to this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from recordio.keywords.checks import boolean, choice, integer
from recordio.keywords.options import Options, Rule, option
from recordio.text.lines import MAX_LINE_BYTES

MOST_BATCHES = 1 << 16


def evenness(name: str, value: Any) -> bool | Literal["balanced"]:
    """Return True, False, or "balanced"."""
    if not isinstance(value, str):
        return boolean(name, value)
    word = choice(name, value.strip().lower(), ("balanced", "true", "false", "1", "0"))
    return "balanced" if word == "balanced" else boolean(name, word)


@dataclass(frozen=True, kw_only=True)
class ProviderOptions(Options):
    """Parts, orders, prefetching, devices and errors."""

    shuffle: bool = option(
        False, "bool", "A new permutation of all samples in every epoch.", boolean
    )
    seed: int = option(0, "int", "Determines the permutations.", integer)
    num_parts: int = option(
        1,
        "int",
        """Number of parts that share the samples: without `shuffle`, each has a block of ``ceil(n
        / num_parts)`` samples; with it, every `num_parts`-th position of the
        common permutation.""",
        partial(integer, low=1),
    )
    part_index: int = option(
        0, "int", "Which of the parts to deliver, from 0.", partial(integer, low=0)
    )
    even: bool | Literal["balanced"] = option(
        False,
        'bool or "balanced"',
        """True gives every part the same number of samples; for this, fewer than `num_parts`
        samples come twice in the epoch. "balanced" gives every sample once, and parts that differ
        by one at most, where blocks by MXNet's rules may differ more, or leave samples out.""",
        evenness,
    )
    prefetch_buffer: int = option(
        4,
        "int",
        "Batches prepared ahead of the consumer, at least 1.",
        partial(integer, low=1, high=MOST_BATCHES),
    )
    data_specs: Any = option(
        None,
        "(Space, source), optional",
        """The form of a batch: a tuple for several spaces, and for one space an object that is
        used like its array. Either is a `DataBatch` as well. The sources are "features" and
        "targets", or the names of arrays; a VectorSpace of as many elements as there are classes
        makes a single label one-hot.""",
    )
    device: Any = option(
        None,
        "str or torch.device, optional",
        """None for NumPy arrays, "cpu" for torch tensors that share their memory, "cuda" or
        "cuda:i" for tensors on that device.""",
    )
    epoch: int = option(0, "int", "Number of the first epoch.", partial(integer, low=0))
    on_error: str = option(
        "raise",
        '{"raise", "skip"}',
        """Raise an error that names a sample that cannot be used, or replace the sample by the
        next good one of the epoch and list it in `skipped`.""",
        partial(choice, allowed=("raise", "skip")),
    )
    error_budget: float | None = option(
        None,
        "int or float, optional",
        """With "skip", how many different samples may be skipped, as a number or, below 1, a
        fraction, before an `ErrorBudgetError` is raised; by default any number.""",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.part_index >= self.num_parts:
            raise ValueError(
                f"part_index={self.part_index}: expected a number below num_parts={self.num_parts}"
            )


@dataclass(frozen=True, kw_only=True)
class NamedOptions(ProviderOptions):
    """The keywords of providers of one array of data and one of labels."""

    data_name: str = option("data", "str", "Name in `provide_data`.")
    label_name: str | None = option(
        "softmax_label", "str or None", "Name in `provide_label`; None for no labels."
    )


@dataclass(frozen=True, kw_only=True)
class FileOptions(NamedOptions):
    """Besides these, what scripts for MXNet pass to its iterators over files."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("ctx", lambda v: True, "has no effect: `device` says where batches go"),
    )

    ctx: str = option(
        "gpu",
        '{"cpu", "gpu"}',
        "Accepted because scripts pass it: the place of MXNet's buffers. Use `device`.",
        partial(choice, allowed=("cpu", "gpu")),
    )


@dataclass(frozen=True, kw_only=True)
class StoredArrayOptions(ProviderOptions):
    """The keywords of providers that read files as arrays, from anywhere."""

    max_array_bytes: int | None = option(
        None,
        "int, optional",
        """A larger array is an error.  By default 64 times the size of the files as they are
        stored, at least 256 MiB.""",
    )
    remote_options: Any = option(
        None,
        "mapping, optional",
        """Settings for the server of a URL: the options of its file system in fsspec, and for S3
        also `endpoint_url`, `access_key_id`, `secret_access_key`, `session_token` and `region`.
        Other settings come from the standard environment.""",
    )


@dataclass(frozen=True, kw_only=True)
class TextOptions(StoredArrayOptions, FileOptions):
    """Besides these, the limits of text."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *FileOptions.rules,
        Rule(
            "label_csv label_libsvm",
            lambda v: v.label_name is None,
            "has no effect without labels: label_name=None",
        ),
    )

    max_line_bytes: int = option(MAX_LINE_BYTES, "int", "A longer line is an error.")
