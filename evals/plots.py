import math
from collections.abc import Sequence
from html import escape

from contend.evals.measures import Calibration
from contend.evals.summary import ArmSummary

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 340, 56, 150, 16, 44
_COLOURS = 8


def _colour(number: int) -> str:
    return f"seat-{number % _COLOURS}" + (" hollow" if number >= _COLOURS else "")


def accuracy_plot(arms: Sequence[ArmSummary]) -> str:
    shown = [each for each in arms if each.accuracy.n and each.tokens.value]
    if not shown:
        return ""
    counts = [each.tokens.value or 1.0 for each in shown]
    low, high = math.log10(min(counts)) - 0.1, math.log10(max(counts)) + 0.1
    plot = _Plot("Tokens per item (logarithmic)", "Accuracy", (low, high))
    for power in range(math.floor(low), math.ceil(high) + 1):
        for step in (1, 2, 5):
            if low <= math.log10(step * 10**power) <= high:
                plot.tick_x(math.log10(step * 10**power), f"{step * 10**power:,.0f}")
    heights = _spread([plot.y(each.accuracy.value or 0.0) for each in shown])
    for number, each in enumerate(shown):
        value = each.accuracy.value or 0.0
        x = plot.x(math.log10(each.tokens.value or 1.0))
        plot.interval(x, each.accuracy.low, each.accuracy.high, _colour(number))
        plot.dot(
            x, plot.y(value), _colour(number), f"{each.arm}: {value:.0%}, n = {each.accuracy.n}"
        )
        plot.key(heights[number], each.arm, _colour(number))
    return plot.svg("Accuracy of each arm against the tokens it uses per item")


def flips_plot(arms: Sequence[ArmSummary]) -> str:
    """Plot how many items each arm changed to right or wrong after its drafts' vote."""
    shown = [(each.arm, each.flips) for each in arms if each.flips]
    if not shown:
        return ""
    most = max(1, *(max(f.right_to_wrong, f.wrong_to_right) for _, f in shown))
    row, middle, scale = 30, 330, 200 / most
    parts = []
    for number, (arm, flips) in enumerate(shown):
        y = 34 + number * row
        lost, won = flips.right_to_wrong * scale, flips.wrong_to_right * scale
        parts += [
            _text(4, y + 14, arm),
            f'<rect class="lost" x="{middle - lost:.1f}" y="{y}" width="{lost:.1f}" height="20"/>',
            f'<rect class="won" x="{middle}" y="{y}" width="{won:.1f}" height="20"/>',
            _text(middle - lost - 6, y + 14, str(flips.right_to_wrong), "end"),
            _text(middle + won + 6, y + 14, str(flips.wrong_to_right)),
            _text(_WIDTH - 4, y + 14, f"n = {flips.n}", "end"),
        ]
    height = 44 + len(shown) * row
    head = (
        f"{_text(middle - 8, 20, 'right to wrong', 'end')}{_text(middle + 8, 20, 'wrong to right')}"
        f'<line class="axis" x1="{middle}" x2="{middle}" y1="28" y2="{height - 8}"/>'
    )
    return _svg(height, head + "".join(parts), "Answers that each arm turned right or wrong")


def reliability_plot(arms: Sequence[tuple[str, Calibration]]) -> str:
    """Plot the observed frequency of `yes` against the forecast probability."""
    shown = [(arm, each) for arm, each in arms if each.n]
    if not shown:
        return ""
    plot = _Plot("Stated probability", "Came true", (0.0, 1.0))
    for step in range(0, 11, 2):
        plot.tick_x(step / 10, f"{step * 10} %")
    plot.diagonal()
    for number, (arm, each) in enumerate(shown):
        for group in each.bins:
            if group.forecast is not None and group.observed is not None:
                said = (
                    f"{arm}: said {group.forecast:.0%}, was {group.observed:.0%}, n = {group.count}"
                )
                radius = 3 + 5 * math.sqrt(group.count / each.n)
                x, y = plot.x(group.forecast), plot.y(group.observed)
                plot.dot(x, y, _colour(number), said, radius)
        plot.key(_TOP + 18 + 20 * number, arm, _colour(number))
    return plot.svg("Reliability diagram; points on the line are well calibrated")


class _Plot:
    def __init__(self, x_label: str, y_label: str, x_range: tuple[float, float]) -> None:
        self._range = x_range
        right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        self._parts = [
            f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>',
            _text((_LEFT + right) / 2, _HEIGHT - 6, x_label, "middle"),
            f'<text transform="translate(14 {(_TOP + bottom) / 2}) rotate(-90)" class="middle">'
            f"{escape(y_label)}</text>",
        ]
        for step in range(0, 11, 2):
            y = self.y(step / 10)
            self._parts += [
                f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>',
                _text(_LEFT - 6, y + 4, f"{step * 10} %", "end"),
            ]

    def x(self, value: float) -> float:
        low, high = self._range
        return _LEFT + (value - low) / (high - low) * (_WIDTH - _RIGHT - _LEFT)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - value * (_HEIGHT - _BOTTOM - _TOP)

    def tick_x(self, value: float, label: str) -> None:
        self._parts.append(_text(self.x(value), _HEIGHT - _BOTTOM + 16, label, "middle"))

    def interval(self, x: float, low: float, high: float, colour: str) -> None:
        ends = f'y1="{self.y(low):.1f}" y2="{self.y(high):.1f}"'
        self._parts.append(f'<line class="bar {colour}" x1="{x:.1f}" x2="{x:.1f}" {ends}/>')

    def dot(self, x: float, y: float, colour: str, title: str, radius: float = 5) -> None:
        self._parts.append(
            f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
            f"<title>{escape(title)}</title></circle>"
        )

    def key(self, y: float, label: str, colour: str) -> None:
        x = _WIDTH - _RIGHT + 14
        self._parts.append(
            f'<circle class="{colour}" cx="{x}" cy="{y:.1f}" r="4"/>{_text(x + 10, y + 4, label)}'
        )

    def diagonal(self) -> None:
        ends = f'x1="{self.x(0)}" y1="{self.y(0)}" x2="{self.x(1)}" y2="{self.y(1)}"'
        self._parts.append(f'<line class="grid" {ends}/>')

    def svg(self, title: str) -> str:
        return _svg(_HEIGHT, "".join(self._parts), title)


def _text(x: float, y: float, text: str, anchor: str = "") -> str:
    placed = f' class="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{placed}>{escape(text)}</text>'


def _svg(height: int, body: str, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{body}</svg>"
    )


def _spread(heights: Sequence[float], least: float = 18) -> list[float]:
    order = sorted(range(len(heights)), key=lambda at: heights[at])
    placed = list(heights)
    for before, at in zip([None, *order], order, strict=False):
        if before is not None:
            placed[at] = max(placed[at], placed[before] + least)
    over = max(placed) - (_HEIGHT - _BOTTOM)
    return [each - max(0.0, over) for each in placed]
