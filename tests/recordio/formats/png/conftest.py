"""The maker of PNG files is shared with the fuzzers: its folder is put on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))
