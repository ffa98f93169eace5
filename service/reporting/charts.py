"""Charts of the report as inline SVG, drawn by matplotlib and coloured by the page's own style sheet."""

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as Xml

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# matplotlib knows no CSS: it draws in these colours, which become variables of the page, light or dark.
_COLOURS = {
    "#010101": "var(--ink)",
    "#020202": "var(--muted)",
    "#030303": "var(--line)",
    "#040404": "var(--treatment)",
    "#050505": "var(--control)",
    "#060606": "var(--good)",
    "#070707": "var(--bad)",
    "#080808": "var(--surface)",
}
INK, MUTED, LINE, TREATMENT, CONTROL, GOOD, BAD, SURFACE = _COLOURS
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be selected, searched and read aloud
    "font.family": "DejaVu Sans",  # only to measure; the page sets its own
    "font.size": 10,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": INK,
    "axes.linewidth": 0.8,
}
_NAMESPACE = "{http://www.w3.org/2000/svg}"
_DRAWN = frozenset({"svg", "g", "path", "defs", "use", "text", "tspan", "clipPath", "rect"})
_ONE_AT_A_TIME = Lock()  # matplotlib's settings belong to the whole process
WIDE, NARROW = 10.4, 3.6  # inches at 72 points: the widths of a page and of a phone
MOST_ROWS = 60


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a forest plot; no interval when a case was not repeated."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """One line of a dumbbell chart: both arms; None where an arm has no value."""

    label: str
    treatment: float | None
    control: float | None


def shortened(label: str, most: int) -> str:
    """A label on one line, without characters no chart can draw."""
    flat = "".join(c if c.isprintable() and c != "\ufffe" else " " for c in label)
    flat = " ".join(flat.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def forest(rows: Sequence[Row], overall: Row | None, axis: str, *, narrow: bool) -> str:
    """Per-case differences around zero with their intervals, and the overall one below."""
    shown = list(rows[:MOST_ROWS])
    count = len(shown) + (1 if overall else 0)
    with _figure(count, narrow=narrow, name="forest") as (figure, axes):
        reach = _reach([*shown, *([overall] if overall else [])])
        for place, row in enumerate(shown):
            shown_value = round(row.value, 2)
            colour = GOOD if shown_value > 0 else BAD if shown_value < 0 else MUTED
            _interval(axes, row, count - 1 - place, colour)
        if overall:
            _diamond(axes, overall)
            axes.axhline(0.78 if narrow else 0.5, color=LINE, linewidth=0.8)
        axes.axvline(0, color=MUTED, linewidth=1, zorder=0)
        axes.set_xlim(-reach, reach)
        axes.set_xlabel(axis)
        axes.xaxis.set_major_formatter("{x:+.2g}")
        _label(axes, [row.label for row in [*shown, *([overall] if overall else [])]], narrow=narrow)
        return _svg(figure, "forest-narrow" if narrow else "forest")


def dumbbells(pairs: Sequence[Pair], low: float, high: float, axis: str, name: str, *, narrow: bool) -> str:
    """Both arms of each line as two dots on one scale."""
    shown = list(pairs[:MOST_ROWS])
    with _figure(len(shown), narrow=narrow, name=name) as (figure, axes):
        for place, pair in enumerate(shown):
            y = len(shown) - 1 - place
            if pair.treatment is not None and pair.control is not None:
                axes.plot([pair.control, pair.treatment], [y, y], color=LINE, linewidth=3, zorder=1)
            if pair.control is not None:
                axes.plot(pair.control, y, "o", color=SURFACE, markeredgecolor=CONTROL, markeredgewidth=2, markersize=7)
            if pair.treatment is not None:
                axes.plot(pair.treatment, y, "o", color=TREATMENT, markersize=8)
        pad = (high - low) * 0.03
        axes.set_xlim(low - pad, high + pad)
        axes.set_xlabel(axis)
        _label(axes, [pair.label for pair in shown], narrow=narrow)
        return _svg(figure, f"{name}-narrow" if narrow else name)


def _reach(rows: Sequence[Row]) -> float:
    """Half the width of an axis around zero that holds everything, but no more than can be."""
    ends = [abs(end) for row in rows for end in (row.value, row.low, row.high) if end is not None]
    return min(1.05, max([0.1, *ends]) * 1.08)


def _interval(axes: "Axes", row: Row, y: float, colour: str) -> None:
    if row.low is not None and row.high is not None:
        axes.plot([max(row.low, -1), min(row.high, 1)], [y, y], color=colour, linewidth=2, solid_capstyle="round")
    axes.plot(row.value, y, "o", color=colour, markersize=7)


def _diamond(axes: "Axes", row: Row) -> None:
    low = max(row.low, -1) if row.low is not None else row.value
    high = min(row.high, 1) if row.high is not None else row.value
    axes.fill([low, row.value, high, row.value], [0, 0.28, 0, -0.28], color=TREATMENT, linewidth=1.5)


def _label(axes: "Axes", labels: Sequence[str], *, narrow: bool) -> None:
    """Names beside the lines, or above them where there is no room beside."""
    axes.set_ylim(-0.7, len(labels) - 0.3)
    places = [len(labels) - 1 - place for place in range(len(labels))]
    if not narrow:
        axes.set_yticks(places, [shortened(label, 38) for label in labels])
        return
    axes.set_yticks([])
    left = axes.get_xlim()[0]
    for place, label in zip(places, labels, strict=True):
        axes.text(left, place + 0.32, shortened(label, 44), fontsize=9, color=INK, va="bottom", ha="left")


@contextmanager
def _figure(rows: int, *, narrow: bool, name: str) -> "Iterator[tuple[Figure, Axes]]":
    # Imported late: it takes half a second, and only reports draw.
    import matplotlib as mpl
    from matplotlib.figure import Figure

    height = 0.75 + (0.5 if narrow else 0.32) * max(rows, 1)
    style = {**_STYLE, "svg.hashsalt": f"{name}-{narrow}"}
    with _ONE_AT_A_TIME, mpl.rc_context(style), warnings.catch_warnings():
        # The measuring font has no emoji; the reader's browser has.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        figure = Figure(figsize=(NARROW if narrow else WIDE, height), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=LINE, linewidth=0.5)
        axes.set_axisbelow(True)
        yield figure, axes


def _svg(figure: "Figure", name: str) -> str:
    """The drawing as an element of the page: no prologue, no foreign colours, nothing that is not a drawing."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    root = Xml.fromstring(text[text.index("<svg") :])  # noqa: S314 - written by matplotlib above
    _tidy(root, name)
    _check(root)
    Xml.register_namespace("", _NAMESPACE.strip("{}"))
    Xml.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    drawn = Xml.tostring(root, encoding="unicode")
    return re.sub("|".join(_COLOURS), lambda match: _COLOURS[match.group()], drawn)


def _check(root: Xml.Element) -> None:
    """Refuse anything but shapes and text, should a label ever get out of its place."""
    for element in root.iter():
        name = element.tag.removeprefix(_NAMESPACE)
        if name not in _DRAWN or any(key.lower().startswith("on") for key in element.attrib):
            raise ValueError(f"a chart holds <{name}>, which is no drawing")


def _tidy(root: Xml.Element, name: str) -> None:
    """Ids that no other chart has, no metadata, no style of its own, and a size the page decides."""
    for child in list(root):
        if child.tag == f"{_NAMESPACE}metadata" or child.find(f"{_NAMESPACE}style") is not None:
            root.remove(child)
    for element in root.iter():
        if re.fullmatch(r"[A-Za-z0-9_.]+_\d+", element.get("id", "")):
            del element.attrib["id"]
    for key in ("width", "height"):
        root.attrib.pop(key, None)
    root.set("class", f"chart {name}")
    root.set("aria-hidden", "true")  # the same figures stand in a table beside it
