"""Where `by_pillow` is found, which others use too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
