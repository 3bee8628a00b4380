"""Floor 4: iterators and checkpoints for training under Ray Train; imported on request only.

``import iterators.ray`` needs Ray; nothing else in `iterators` imports this package.
"""

from recordio.extras import need

need("ray", "iterators.ray")

from .train import load_state, save_state, train_iterator  # noqa: E402

__all__ = ["load_state", "save_state", "train_iterator"]
