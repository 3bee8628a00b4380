"""``python -m iterators.compat.mxnet.tools.im2rec``: `im2rec`, under the name of MXNet's tool."""

from __future__ import annotations

import sys

from recordio.tools.im2rec import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
