"""`DataSet`, `Batch`, `DataSource`: inputs and targets that belong together, as views.

They cut out rows and apply preprocessing; they do not decide which rows (see `samplers`) and read
no files.  `view_batch` puts a provider's batch into views; it copies and converts nothing.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from recordio.keywords.checks import integer

from ..core.backend import is_stored_sparse
from ..core.batch import DataBatch, axes_of
from . import batch_rows as rows
from .array_views import ClassView, ImageView, SequenceView
from .data_view import DataView
from .list_view import ListView
from .preprocess import Pipeline, Preprocess
from .view import View


def as_view(value: Any, name: str = "inputs") -> View | None:
    """Return a View as it is, a list of Views as a `ListView`, None as None."""
    if value is None or isinstance(value, View):
        return value
    if isinstance(value, (list, tuple)):
        return ListView(value)
    raise TypeError(f"{name} must be a View or a list of Views, not {type(value).__name__}")


class BaseSet:
    """Inputs and targets of the same rows.

    Parameters
    ----------
    which_set : str
        "train", "valid" or "test"; only a train set may fit preprocessing by default.
    inputs, targets : View or list of View, optional
        Lists become a `ListView`.
    """

    def __init__(self, which_set: str = "train", inputs: Any = None, targets: Any = None) -> None:
        self.which_set = which_set
        self.inputs = inputs
        self.targets = targets
        self._n_sample: int | None = None

    @property
    def inputs(self) -> View | None:
        """Input of a model."""
        return self._inputs

    @inputs.setter
    def inputs(self, value: Any) -> None:
        self._inputs = as_view(value, "inputs")

    @property
    def targets(self) -> View | None:
        """Targets of a model."""
        return self._targets

    @targets.setter
    def targets(self, value: Any) -> None:
        self._targets = as_view(value, "targets")

    @property
    def is_train(self) -> bool:
        """True if this is the train set."""
        return self.which_set == "train"

    @property
    def n_sample(self) -> int:
        """Number of rows: what was set, else that of the inputs, else that of the targets, else 0.

        Examples
        --------
        >>> import numpy as np
        >>> BaseSet(targets=ClassView("b", np.arange(3))).n_sample
        3
        """
        if self._n_sample is not None:
            return self._n_sample
        for view in (self.inputs, self.targets):
            if view is not None:
                return view.n_sample()
        return 0

    @n_sample.setter
    def n_sample(self, value: int | None) -> None:
        self._n_sample = None if value is None else integer("n_sample", value, low=0)

    def __len__(self) -> int:
        return self.n_sample

    def preprocess(
        self,
        input_preprocess: Preprocess | None = None,
        target_preprocess: Preprocess | None = None,
        can_fit: bool | None = None,
    ) -> None:
        """Change inputs, targets or both in place.

        Parameters
        ----------
        input_preprocess, target_preprocess : preprocess, optional
            At least one; see `iterators.views.preprocess`.
        can_fit : bool, optional
            Whether they may take their parameters from these data; by default only from a train
            set.

        Raises
        ------
        TypeError
            If neither is given, or there is nothing to apply one to.
        """
        if input_preprocess is None and target_preprocess is None:
            raise TypeError("preprocess() needs input_preprocess, target_preprocess or both")
        can_fit = self.is_train if can_fit is None else can_fit
        for name, step, view in (
            ("inputs", input_preprocess, self.inputs),
            ("targets", target_preprocess, self.targets),
        ):
            if step is None:
                continue
            if view is None:
                raise TypeError(f"the {self.which_set} set has no {name} to preprocess")
            step.apply(view, can_fit)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.which_set!r}, {self.inputs!r}, {self.targets!r})"


class Batch(BaseSet):
    """Some rows of a set, with their positions in it.

    Parameters
    ----------
    which_set, inputs, targets
        As for `BaseSet`.
    epoch_size : int, optional
        Rows of the set.

    Attributes
    ----------
    batch_size : int or None
        Number of rows that were requested.
    batch_iter : int or None
        Rows seen in this epoch, this batch included.
    indices : numpy.ndarray or None
        Row numbers in the set.
    sequence_start : bool or None
        From samplers of sequences: whether the rows do not continue those of the batch before.
    """

    def __init__(
        self,
        which_set: str = "train",
        inputs: Any = None,
        targets: Any = None,
        epoch_size: int | None = None,
    ) -> None:
        super().__init__(which_set, inputs, targets)
        self.epoch_size = epoch_size
        self.batch_size: int | None = None
        self.batch_iter: int | None = None
        self.indices: Any = None
        self.sequence_start: bool | None = None

    def setup(
        self,
        batch_iter: int | None = None,
        batch_size: int | None = None,
        n_sample: int | None = None,
        indices: Any = None,
        epoch_size: int | None = None,
    ) -> Batch:
        """Record where the rows come from; a sampler does so after each draw.

        `epoch_size` stays what it was if it is not given.
        """
        self.batch_iter, self.batch_size, self.indices = batch_iter, batch_size, indices
        self.sequence_start = None
        self.n_sample = n_sample
        if epoch_size is not None:
            self.epoch_size = epoch_size
        return self


class DataSet(BaseSet):
    """Inputs and targets from which batches are cut.

    Examples
    --------
    >>> import numpy as np
    >>> from iterators import ImageView
    >>> images = ImageView("bchw", np.zeros((10, 3, 8, 8), np.float32))
    >>> train = DataSet("train", images, ClassView("b", np.arange(10)))
    >>> batch = train.index([7, 1])
    >>> batch.targets.forward_get("b").tolist(), batch.n_sample, batch.epoch_size
    ([7, 1], 2, 10)
    >>> train.io_shapes
    ('bchw', 'b')
    """

    @property
    def io_shapes(self) -> tuple[Any, Any]:
        """Orders of axes of inputs and targets; None for what is missing."""
        inputs, targets = (None if v is None else v.view for v in (self.inputs, self.targets))
        return inputs, targets

    def batch(self, n: int) -> Batch:
        """Return the first `n` rows, or all if there are fewer."""
        return self.sub(0, min(integer("n", n, low=0), self.n_sample))

    def sub(self, start: int, stop: int, out: Batch | None = None) -> Batch:
        """Return copies of rows ``[start, stop)``.

        Parameters
        ----------
        start, stop : int
        out : Batch, optional
            Filled and returned instead of a new batch; its memory is used again.
        """
        return self._fill(out, "sub", start, stop)

    def index(self, ids: Any, out: Batch | None = None) -> Batch:
        """Return copies of these rows; see `sub` and `DataView.index`."""
        return self._fill(out, "index", ids)

    def sample(self, n: int, out: Batch | None = None, rng: Any = None) -> Batch:
        """Return copies of `n` rows drawn at random with replacement; see `sub`.

        Parameters
        ----------
        n : int
        out : Batch, optional
        rng : seed or numpy.random.Generator, optional
            By default fresh randomness of the system.
        """
        rows = self._random_rows(n, rng)
        batch = self.index(rows, out)
        return batch.setup(n_sample=len(rows), indices=rows, epoch_size=self.n_sample)

    def _random_rows(self, n: int, rng: Any) -> np.ndarray:
        shares = self.sampling_weights()
        if shares is not None:
            shares = shares / shares.sum()
        n = integer("n", n, low=0)
        return np.random.default_rng(rng).choice(self.n_sample, n, p=shares)

    def sampling_weights(self) -> np.ndarray | None:
        """Return how often to draw each row at random, one number a row; None if all are equal."""
        return None

    def _fill(self, out: Batch | None, method: str, *which: Any) -> Batch:
        batch = Batch(self.which_set) if out is None else out
        for name in ("inputs", "targets"):
            view = getattr(self, name)
            if view is not None:
                view = getattr(view, method)(*which, out=getattr(batch, name))
            setattr(batch, name, view)
        batch.which_set = self.which_set
        return batch.setup(epoch_size=self.n_sample)


class DataSource:
    """Up to three sets, preprocessed with parameters fitted on the first.

    Parameters
    ----------
    train_set, valid_set, test_set : DataSet, optional
    input_preprocess, target_preprocess : preprocess or list of them, optional
        Fitted on the train set and applied to all three when the source is made.  Lists become a
        `Pipeline`.

    Examples
    --------
    >>> import numpy as np
    >>> from iterators.views import Standardize
    >>> train = DataSet("train", DataView("bf", np.array([[1.0], [3.0]])))
    >>> valid = DataSet("valid", DataView("bf", np.array([[2.0]])))
    >>> source = DataSource(train, valid, input_preprocess=Standardize(std_eps=0))
    >>> array, view, data_set = source.get("valid", "input")
    >>> array.tolist(), data_set is valid
    ([[0.0]], True)
    """

    def __init__(
        self,
        train_set: DataSet | None = None,
        valid_set: DataSet | None = None,
        test_set: DataSet | None = None,
        input_preprocess: Any = None,
        target_preprocess: Any = None,
    ) -> None:
        self.train_set = train_set
        self.valid_set = valid_set
        self.test_set = test_set
        self.input_preprocess: Any = _pipeline(input_preprocess)
        self.target_preprocess: Any = _pipeline(target_preprocess)
        if self.input_preprocess is None and self.target_preprocess is None:
            return
        for data_set in (train_set, valid_set, test_set):
            if data_set is not None:
                data_set.preprocess(
                    self.input_preprocess, self.target_preprocess, data_set is train_set
                )

    def get(
        self,
        which: str = "train",
        attribute: str = "input",
        view: Any = "default",
        type: Any = None,
    ) -> tuple[Any, View, DataSet]:
        """Return values of a set in some form.

        Parameters
        ----------
        which : {"train", "valid", "test"}
        attribute : {"input", "inputs", "target", "targets"}
        view, type
            Form and element type; see `DataView.forward_get`.

        Returns
        -------
        array, View, DataSet

        Raises
        ------
        ValueError
            If there is no such set or attribute.
        """
        own_view, data_set = self._find(which, attribute)
        return own_view.forward_get(view, type), own_view, data_set

    def set(self, which: str, attribute: str, view: Any, array: Any) -> tuple[View, DataSet]:
        """Replace the values of a set; `view` is the order of their axes."""
        own_view, data_set = self._find(which, attribute)
        own_view.forward_put(view, array)
        return own_view, data_set

    def _find(self, which: str, attribute: str) -> tuple[View, DataSet]:
        sets = {"train": self.train_set, "valid": self.valid_set, "test": self.test_set}
        if which not in sets:
            raise ValueError(f"which={which!r}: expected 'train', 'valid' or 'test'")
        name = {"input": "inputs", "target": "targets"}.get(attribute, attribute)
        if name not in ("inputs", "targets"):
            raise ValueError(f"attribute={attribute!r}: expected 'input' or 'target'")
        data_set = sets[which]
        if data_set is None:
            raise ValueError(f"this source has no {which} set")
        view = getattr(data_set, name)
        if view is None:
            raise ValueError(f"the {which} set has no {name}")
        return view, data_set

    def i_size(self, axis: str | None = None) -> Any:
        """Return the sizes of one input of the train set, or the size of one axis.

        Raises
        ------
        ValueError
            If there is no train set, or its inputs have no such axis.
        TypeError
            If the inputs are a list of views.
        """
        view, _ = self._find("train", "input")
        if not isinstance(view, DataView):
            raise TypeError("the inputs are several views, each with sizes of its own")
        sizes = dict(zip(view.view, view.input.shape, strict=True))
        if axis is not None:
            return sizes[view.view[view.find_axis(axis)]]
        return builtins.tuple(size for name, size in sizes.items() if name != "b")

    @property
    def classes(self) -> list[Any] | None:
        """Names of the classes of the train targets, or None."""
        targets = None if self.train_set is None else self.train_set.targets
        return targets.classes if isinstance(targets, ClassView) else None


def _pipeline(value: Any) -> Any:
    return Pipeline(value) if isinstance(value, (list, tuple)) else value


class MadeSet(DataSet):
    """A set without stored views; its batches are made from row numbers.

    `n_sample` may be set later; `classes` names the classes that rows consist of or belong to.
    """

    def __init__(self, which_set: str, n_sample: int | None, classes: Any = None) -> None:
        super().__init__(which_set)
        self.n_sample = n_sample
        self.classes: list[Any] | None = None if classes is None else list(classes)

    def _make(self, batch: Batch, numbers: np.ndarray) -> None:
        """Put inputs and targets for these rows into a batch."""
        raise TypeError(f"{type(self).__name__} does not define how its batches are made")

    def preprocess(self, *arguments: Any, **keywords: Any) -> None:
        """Refused: there are no stored values to change."""
        raise TypeError(f"{type(self).__name__} makes its batches: preprocess those")

    def _fill(self, out: Batch | None, method: str, *which: Any) -> Batch:
        if method == "sub":
            start, stop = which
            numbers = np.arange(*rows.row_range(start, stop, self.n_sample))
        else:
            (ids,) = which
            numbers = rows.row_numbers(ids, self.n_sample)
        batch = Batch(self.which_set) if out is None else out
        self._make(batch, numbers)
        batch.which_set = self.which_set
        return batch.setup(epoch_size=self.n_sample)

    def _put_classes(self, view: Any, axes: str, values: np.ndarray) -> ClassView:
        """Return classes in a view of an earlier batch, or in a new one."""
        if type(view) is not ClassView:
            view = ClassView()
        view.forward_put(axes, values)
        view.set_classes(self.classes)
        return view

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.which_set!r}, {self.n_sample} rows)"


def view_batch(batch: DataBatch, which_set: str = "train") -> Batch:
    """Return views over the arrays of a provider's batch, which are not copied.

    Parameters
    ----------
    batch : DataBatch
        With descriptions (`provide_data`, `provide_label`), whose layouts name the axes.
    which_set : str
        Kept in the result.

    Returns
    -------
    Batch
        Data are `inputs`, labels are `targets`: four axes with channels give an `ImageView`, three
        a `SequenceView`, labels of one or two axes a `ClassView`, everything else a `DataView`:
        one-hot labels (layout "NK") and sparse ones too.  Several arrays give a `ListView`, none
        None.  `n_sample` does not count padding; `indices`
        are the ids of the samples.

    Raises
    ------
    ValueError
        If an array has no axes called ``N`` in its layout.

    Examples
    --------
    >>> import numpy as np
    >>> from iterators import DataBatch, DataDesc
    >>> views = view_batch(DataBatch(
    ...     [np.zeros((4, 3, 8, 8))], [np.arange(4)], pad=1,
    ...     provide_data=[DataDesc("data", (4, 3, 8, 8))],
    ...     provide_label=[DataDesc("softmax_label", (4,), layout="N")]))
    >>> views.inputs.forward_get("bhwc").shape, views.targets.forward_get("bt").shape
    ((4, 8, 8, 3), (4, 1))
    >>> views.n_sample
    3
    """
    result = Batch(
        which_set,
        _views(batch.data, batch.provide_data, False),
        _views(batch.label, batch.provide_label, True),
    )
    views = [view for view in (result.inputs, result.targets) if view is not None]
    rows = len(views[0]) if views else batch.count + (batch.pad or 0)
    return result.setup(batch_size=rows, n_sample=batch.count, indices=batch.index)


def _views(arrays: Sequence[Any], descriptions: Any, labels: bool) -> View | None:
    if not arrays:
        return None
    described = descriptions or [None] * len(arrays)
    views = [_view(x, desc, labels) for x, desc in zip(arrays, described, strict=True)]
    return views[0] if len(views) == 1 else ListView(views)


def _view(x: Any, description: Any, label: bool) -> View:
    axes = _axes(x, getattr(description, "layout", None))
    named = "".join(sorted(axes))
    if x.ndim == 2 and "b" in axes:
        # One letter beside the batch: K are classes, one-hot, and sparse rows are no list of them.
        letter = axes.replace("b", "")
        if label and letter != "k" and not is_stored_sparse(x):
            return ClassView(axes.replace(letter, "t"), x)
        return DataView(axes.replace(letter, "f"), x)
    if label and x.ndim == 1:
        return ClassView("b", x)
    if named == "bchw":
        return ImageView(axes, x)
    return SequenceView(axes, x) if named == "bcw" else DataView(axes, x)


def _axes(x: Any, layout: str | None) -> str:
    """Return the letters of views for a layout of MXNet's; the batch comes first by default."""
    axes = axes_of(layout, x.ndim)
    # T is the position in a sequence, which views call w; an image has a w of its own.
    return axes if "w" in axes else axes.replace("t", "w")
