"""The fuzzers are programs, not a package: their folder is put on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
