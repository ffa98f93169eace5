"""Draw the plots of docs/benchmarks/ from bench/results/; what never ran is left out.

python bench/plots.py
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot
from matplotlib.axes import Axes
from results import load

matplotlib.use("svg")
# The same drawing must give the same bytes, or every run would be a change to commit.
matplotlib.rcParams |= {"svg.hashsalt": "assay", "svg.fonttype": "none", "font.size": 10, "axes.grid": True}
matplotlib.rcParams |= {"axes.axisbelow": True, "grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False}

FOLDER = Path(__file__).parents[1] / "docs" / "benchmarks"
BLUE = "#1b6ac9"
NAMES = {
    "assay": ("Assay", BLUE),
    "promptfoo": ("promptfoo", "#c97b1b"),
    "inspect": ("Inspect AI", "#7a7a7a"),
    "inspect-tuned": ("Inspect AI, tuned", "#b0b0b0"),
}


def peers_speed(found: dict[str, Any], axes: Axes) -> None:
    """Cases per second of each tool, one group of bars for each work."""
    rows = {(row["latency"], row["concurrency"], row["contender"]): row for row in found["summary"]}
    groups = list(dict.fromkeys((latency, concurrency) for latency, concurrency, _ in rows))
    names = list(dict.fromkeys(name for *_, name in rows))
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        heights = [rows[(*group, name)]["cases_per_second"] or 0 for group in groups]
        places = [place + number * width for place in range(len(groups))]
        bars = axes.bar(places, heights, width, label=NAMES[name][0], color=NAMES[name][1])
        axes.bar_label(bars, fmt="%.0f", fontsize=8)
    titles = [f"{latency} s, {concurrency} at once" for latency, concurrency in groups]
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(groups))], titles)
    axes.set_ylabel("cases per second")
    axes.legend(frameon=False)


def scale_rate(found: dict[str, Any], axes: Axes) -> None:
    """Runs per second over time."""
    looks = found["looks"][1:]
    axes.plot([one["minute"] for one in looks], [one["runs_per_second"] for one in looks], color=BLUE)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("minutes")
    axes.set_ylabel("runs per second")


def scale_memory(found: dict[str, Any], axes: Axes) -> None:
    """Memory of every part over the runs that were settled."""
    looks = found["looks"]
    for name in looks[0]["memory_mib"]:
        axes.plot([one["settled"] for one in looks], [one["memory_mib"][name] for one in looks], label=name)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("runs settled")
    axes.set_ylabel("MiB")
    axes.legend(frameon=False, ncols=2)


def aggregation(found: dict[str, Any], axes: Axes) -> None:
    """Processor time over the number of runs."""
    shapes = found["shapes"]
    places = range(len(shapes))
    ways = {"json": "only loading the files", "folder": "from a folder", "database": "from the database, with report"}
    for number, (way, label) in enumerate(ways.items()):
        bars = axes.bar([place + number * 0.27 for place in places], [one[way]["cpu_s"] for one in shapes], 0.27)
        bars.set_label(label)
        axes.bar_label(bars, fmt="%.1f", fontsize=8)
    titles = [f"{one['runs']:,} runs,\n{one['cases']} cases" for one in shapes]
    axes.set_xticks([place + 0.27 for place in places], titles)
    axes.set_ylabel("CPU seconds")
    axes.legend(frameon=False)


# plot -> (the results it is drawn from, its title, how)
PLOTS: dict[str, tuple[str, str, Callable[[dict[str, Any], Axes], None]]] = {
    "peers-speed": ("peers", "The same work for three tools", peers_speed),
    "scale-rate": ("scale", "Throughput over time", scale_rate),
    "scale-memory": ("scale", "Memory while a very large batch runs", scale_memory),
    "aggregation": ("aggregation", "Aggregating a batch", aggregation),
}


def main() -> None:
    """Draw what there is."""
    for name, (source, title, draw) in PLOTS.items():
        found = load(source)
        if not found or not found.get("summary", True):
            print(f"{name}: no figures; run the bench {source} first")
            continue
        figure, axes = pyplot.subplots(figsize=(8, 3.6), layout="constrained")
        draw(found, axes)
        axes.set_title(f"{title} ({found['date'][:10]})", fontsize=11)
        figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure)
        print(f"drawn: docs/benchmarks/{name}.svg")


if __name__ == "__main__":
    main()
