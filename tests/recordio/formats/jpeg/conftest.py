"""Modules beside the tests of this folder can be imported by them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
