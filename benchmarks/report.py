"""From the rounds of a comparison to ratios, Markdown, JSON and the chart.

It measures nothing.  `python benchmarks/report.py FOLDER` renews the page and the chart from the
`benchmarks.json` in a folder.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from contenders import CONTENDERS, OURS
from harness import markdown_table, number
from peers.jobs import JOBS

__all__ = ["as_json", "job_section", "machine_lines", "put", "rows", "write"]

#: The summary: how it calls a job, and the contenders beside ours.
SUMMARY_JOBS = {
    "random_resized_crop": "photographs, random resized crop 224",
    "optimized": "the same, ours after `recordio optimize`",
    "resize_crop": "photographs, short side 256, random crop",
    "progressive": "the same crop of progressive JPEG",
    "faces": "faces 112 x 112",
    "png": "photographs as PNG",
    "webp": "photographs as WebP",
    "training": "torchvision's own pixels, random resized crop 224",
    "recipe": "RandAugment and erasing",
}
#: The rows of the README and of the paper: common jobs, and the one that is least in our favour.
README_JOBS = ("random_resized_crop", "training", "resize_crop", "faces", "webp")
SUMMARY_COLUMNS = {
    "MXNet 1.9.1": "mxnet",
    "DALI (CPU)": "dali",
    "torch + OpenCV": "torch",
    "torchvision": "torchvision_pillow",
    "tf.data": "tensorflow",
}
PICTURE = "![A bar for each contender in a panel for each job](benchmarks.svg)\n"


def rows(result):
    """Return the results of a job: a dictionary for each contender, ours first.

    `ratio` is ours divided by theirs, the median of the rounds, `spread` the smallest and the
    largest; `cpu_ratio` is the same for work per second of processor time; `cores` is how many
    the contender kept busy.
    """

    def rates(name, time):
        return [turn["items"] / turn[time] for turn in result["rounds"][name]]

    job, found = JOBS[result["job"]], []
    for name, turns in result["rounds"].items():
        row = {
            "contender": name,
            "rate": statistics.median(rates(name, "elapsed")),
            "cpu_rate": statistics.median(rates(name, "processor")),
            "cores": statistics.median(turn["processor"] / turn["elapsed"] for turn in turns),
            "bar": job.bars.get(name),
        }
        if name != OURS and OURS in result["rounds"]:
            for key, time in (("ratio", "elapsed"), ("cpu_ratio", "processor")):
                pairs = zip(rates(OURS, time), rates(name, time), strict=True)
                ratios = [ours / theirs for ours, theirs in pairs]
                row[key] = statistics.median(ratios)
                if key == "ratio":
                    row["spread"] = min(ratios), max(ratios)
        found.append(row)
    return found


def job_section(result):
    """Heading, table and who was absent."""
    job, lines = JOBS[result["job"]], []
    for row in rows(result):
        ratio = spread = cpu_ratio = bar = ""
        if "ratio" in row:
            ratio, cpu_ratio = f"**{row['ratio']:.2f}**", f"{row['cpu_ratio']:.2f}"
            spread = "{:.2f} to {:.2f}".format(*row["spread"])
        if row["bar"]:
            met = "met" if row.get("ratio", 0) >= row["bar"] else "missed"
            bar = f"{row['bar']:g}, {met}"
        lines.append(
            (
                CONTENDERS[row["contender"]].title,
                number(row["rate"]),
                number(row["cpu_rate"]),
                f"{row['cores']:.2f}",
                ratio,
                spread,
                cpu_ratio,
                bar,
            )
        )
    text = f"### {job.title}\n\n"
    if lines:
        head = [
            f"`{job.name}`",
            job.unit,
            "per CPU s",
            "cores used",
            "ours / theirs",
            "of rounds",
            "per CPU s",
            "target",
        ]
        text += markdown_table(head, *lines) + "\n"
    reasons = {}
    for name, reason in result["absent"].items():
        reasons.setdefault(reason, []).append(CONTENDERS[name].title)
    for reason, titles in reasons.items():
        text += f"\nabsent: {', '.join(titles)} ({reason})\n"
    return text


def machine_lines(document):
    """The machine as a list."""
    facts = document["machine"]
    caches = ", ".join(f"{size} {name}" for name, size in facts["caches"].items())
    threads = document["threads"]
    return "\n".join(
        (
            f"- {facts['processor']}, {facts['cores']} cores, {caches}; {facts['memory']} memory",
            f"- {facts['system']}, Python {facts['python']}",
            f"- {facts['date']}, commit {facts['commit']}",
            f"- {threads} threads or workers for every contender",
            f"- before the start: load {facts['load before']:.2f}; {threads} threads decoding"
            f" together did {facts['free cores']:.2f} times the work of one",
            f"- {document['photos']}",
        )
    )


def settings_table(document):
    """Versions, and what every contender was set to."""
    lines = []
    for name, versions in document["versions"].items():
        if name != "untouched":
            text = ", ".join(f"{key} {value}" for key, value in versions.items())
            lines.append((CONTENDERS[name].title, text, CONTENDERS[name].settings))
    return markdown_table(("", "Versions", "Set to"), *lines, numeric=())


def as_json(document):
    """JSON with one line for each turn."""
    text = json.dumps(document, indent=1)
    head, *rest = text.split('{\n     "steps"')
    turns = [head]
    for part in rest:
        turn, end, tail = part.partition("}")
        turns.append('{"steps"' + " ".join(turn.split()) + end + tail)
    return "".join(turns) + "\n"


def ratios(document):
    """Ours divided by theirs for each job and contender, per second of processor time.

    >>> sorted(ratios({"jobs": []}))
    []
    """
    return {
        (result["job"], row["contender"]): row["cpu_ratio"]
        for result in document["jobs"]
        for row in rows(result)
        if "cpu_ratio" in row
    }


def summary_table(document, jobs=tuple(SUMMARY_JOBS)):
    """The ratios of some jobs in one table."""
    known = ratios(document)
    lines = [
        (
            SUMMARY_JOBS[job],
            *(
                f"{known[job, name]:.1f}" if (job, name) in known else ""
                for name in SUMMARY_COLUMNS.values()
            ),
        )
        for job in jobs
    ]
    return markdown_table(("", *SUMMARY_COLUMNS), *lines)


def put(path, marker, text):
    """Replace what stands between two markers of a page."""
    page = path.read_text()
    begin, end = f"<!-- {marker}: begin -->\n", f"<!-- {marker}: end -->\n"
    before, found, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise ValueError(f"{path} lacks the markers {begin.strip()} and {end.strip()}")
    path.write_text(before + begin + text.rstrip() + "\n" + end + after)


def chart(document, path):
    """A bar for each contender in a panel for each job, as SVG."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update(
        {"svg.hashsalt": "benchmarks", "svg.fonttype": "none", "font.size": 9}
    )
    from matplotlib import pyplot

    results = [result for result in document["jobs"] if result["rounds"]]
    heights = [len(result["rounds"]) + 1.5 for result in results]
    figure, panels = pyplot.subplots(
        len(results),
        figsize=(8, 0.24 * sum(heights)),
        height_ratios=heights,
        layout="constrained",
        squeeze=False,
    )
    for panel, result in zip(panels[:, 0], results, strict=True):
        job, found = JOBS[result["job"]], rows(result)
        rates = [row["rate"] for row in found]
        names = [row["contender"] for row in found]
        colours = [
            "#c0392b" if name == OURS
            else "#d98880" if name == "untouched"
            else "#d5d8dc" if name in ("full_decode", "coefficients")
            else "#7f8c8d"
            for name in names
        ]  # fmt: skip
        bars = panel.barh([CONTENDERS[name].title for name in names], rates, color=colours)
        panel.bar_label(bars, [f"{number(rate)}" for rate in rates], padding=3)
        panel.invert_yaxis()
        panel.set_xlim(0, 1.12 * max(rates))
        panel.set_xticks([])
        panel.spines[["top", "right", "bottom"]].set_visible(False)
        panel.tick_params(left=False)
        panel.set_title(f"{job.title.replace('`', '')} ({job.unit})", loc="left", fontsize=9)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def write(document, folder):
    """Renew the page and the chart in a folder."""
    chart(document, folder / "benchmarks.svg")
    page = folder / "benchmarks.md"
    put(page, "machine", machine_lines(document))
    put(page, "ratios", summary_table(document))
    put(page, "results", "\n".join((PICTURE, *map(job_section, document["jobs"]))))
    put(page, "settings", settings_table(document))
    for name in ("README.md", "paper/paper.md"):
        if (folder.parents[1] / name).is_file():
            put(folder.parents[1] / name, "ratios", summary_table(document, README_JOBS))


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    write(json.loads((folder / "benchmarks.json").read_text()), folder)
