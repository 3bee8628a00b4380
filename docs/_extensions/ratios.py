"""The role ``ratio``: a figure of `make bench-peers`, ours divided by another's.

``{ratio}`optimized untouched``` is the job and the contender; the figure is taken from
`docs/measurements/benchmarks.json` when the site is built, per second of processor time.
"""

import json
import sys
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxRole

ROOT = Path(__file__).resolve().parents[2]


class Ratio(SphinxRole):
    """One figure, as text."""

    def run(self):
        """Look the figure up; a job or contender that does not exist is an error of the page."""
        job, _, contender = self.text.partition(" ")
        known = self.config.measured_ratios
        if (job, contender) not in known:
            message = self.inliner.reporter.error(f"no ratio of {self.text!r}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        return [nodes.Text(f"{known[job, contender]:.1f}")], []


def measured():
    """Return the ratios of the benchmarks' own report."""
    sys.path.append(str(ROOT / "benchmarks"))
    from report import ratios

    return ratios(json.loads((ROOT / "docs" / "measurements" / "benchmarks.json").read_text()))


def setup(app):
    """Register the role."""
    app.add_config_value("measured_ratios", measured(), "", [dict])
    app.add_role("ratio", Ratio())
    return {"parallel_read_safe": True}
