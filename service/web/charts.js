// Small SVG charts: bars, probability lines, and the calibration plot.

import { el, hiddenText, svg } from "./dom.js";
import { oneDigit, percent, whole } from "./labels.js";

/** Return a labeled bar of `value` out of `most`. */
export function bar(label, value, most, { seat = null, text = oneDigit(value) } = {}) {
  const share = value === null || value === undefined ? 0 : Math.max(0, Math.min(1, value / most));
  const drawn = svg("svg", { class: `bar ${seat === null ? "" : `seat-${seat}`}`, viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect.bar-track", { width: 100, height: 8, rx: 4 }),
    share > 0 && svg("rect.bar-fill", { width: 100 * share, height: 8, rx: 4 }));
  return el("div.bar-row", el("span.bar-label", label), drawn, el("span.bar-value", text));
}

const WIDTH = 300;
const HEIGHT = 150;
const EDGE = { left: 32, right: 12, top: 8, bottom: 22 };
const inside = (share, from, to) => from + share * (to - from);
const atHeight = (probability) => inside(1 - probability, EDGE.top, HEIGHT - EDGE.bottom);

function gridLines() {
  return [0, 0.5, 1].map((p) => [
    svg("line.grid", { x1: EDGE.left, x2: WIDTH - EDGE.right, y1: atHeight(p), y2: atHeight(p) }),
    svg("text.tick", { x: EDGE.left - 6, y: atHeight(p) + 3, "text-anchor": "end" }, `${p * 100}`),
  ]);
}

/** Draw one line per seat over the rounds, the spread of the seats, and the final forecast. */
export function forecastChart({ label, seats, rounds, series, final }) {
  const columns = [...rounds.map((number) => `R${number}`), ...(final === null ? [] : ["Final"])];
  const x = (at) => inside(columns.length < 2 ? 0.5 : at / (columns.length - 1), EDGE.left + 8, WIDTH - EDGE.right - 8);
  const spread = rounds.map((number) => {
    const values = seats.map((seat) => series[seat.id]?.[number]).filter((value) => value !== undefined);
    return values.length ? [Math.min(...values), Math.max(...values)] : null;
  });
  const known = spread.map((range, at) => [range, at]).filter(([range]) => range);
  const band = [...known.map(([range, at]) => `${x(at)},${atHeight(range[1])}`), ...known.reverse().map(([range, at]) => `${x(at)},${atHeight(range[0])}`)];
  const lines = seats.map((seat) => {
    const points = rounds.map((number, at) => [at, series[seat.id]?.[number]]).filter(([, value]) => value !== undefined);
    return svg("g", { class: `line seat-${seat.place % 8}` },
      svg("polyline", { points: points.map(([at, value]) => `${x(at)},${atHeight(value)}`).join(" ") }),
      points.map(([at, value]) => svg("circle", { cx: x(at), cy: atHeight(value), r: 3 }, svg("title", `${seat.name}, round ${rounds[at]}: ${percent(value)}`))));
  });
  const described = final === null ? `Probability of ${label} by round` : `Probability of ${label} by round; final forecast ${percent(final)}`;
  return el("figure.chart",
    el("figcaption", label, final !== null && el("strong", percent(final))),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": described },
      gridLines(),
      columns.map((name, at) => svg("text.tick", { x: x(at), y: HEIGHT - 6, "text-anchor": "middle" }, name)),
      band.length > 2 && svg("polygon.spread", { points: band.join(" ") }),
      lines,
      final !== null && svg("circle.final", { cx: x(columns.length - 1), cy: atHeight(final), r: 6 })));
}

export function legend(seats) {
  return el("ul.legend", seats.map((seat) => el("li", { class: `seat-${seat.place % 8}` }, el("i.swatch"), seat.name)));
}

/** Plot how often outcomes came true against how likely they were said to be. */
export function calibrationPlot(bins) {
  const size = 300;
  const edge = 34;
  const x = (p) => inside(p, edge, size - 10);
  const y = (p) => inside(1 - p, 10, size - edge);
  const filled = bins.filter((bin) => bin.n > 0 && bin.mean_forecast !== null);
  const most = Math.max(1, ...filled.map((bin) => bin.n));
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  return el("figure.chart.calibration",
    svg("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": "Calibration: how often outcomes came true against the forecast probability" },
      ticks.map((p) => [
        svg("line.grid", { x1: x(0), x2: x(1), y1: y(p), y2: y(p) }),
        svg("text.tick", { x: edge - 6, y: y(p) + 3, "text-anchor": "end" }, `${p * 100}`),
        svg("text.tick", { x: x(p), y: size - edge + 16, "text-anchor": "middle" }, `${p * 100}`)]),
      svg("line.diagonal", { x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
      svg("polyline.calibration-line", { points: filled.map((bin) => `${x(bin.mean_forecast)},${y(bin.share_true)}`).join(" ") }),
      filled.map((bin) => svg("circle.calibration-dot", { cx: x(bin.mean_forecast), cy: y(bin.share_true), r: 3 + 5 * Math.sqrt(bin.n / most) },
        svg("title", `Forecast ${percent(bin.mean_forecast)}, came true ${percent(bin.share_true)}, ${whole(bin.n)} outcomes`))),
      svg("text.tick", { x: x(0.5), y: size - 2, "text-anchor": "middle" }, "forecast probability, %")),
    el("figcaption", "Dots on the diagonal are perfectly calibrated; larger dots stand for more outcomes."),
    calibrationTable(filled));
}

function calibrationTable(bins) {
  return el("table.visually-hidden",
    el("caption", "Calibration"),
    el("thead", el("tr", ["Forecast", "Came true", "Outcomes"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", bins.map((bin) => el("tr", el("td", percent(bin.mean_forecast)), el("td", percent(bin.share_true)), el("td", whole(bin.n))))));
}

/** Return severity counts such as 2 critical, 3 major. */
export function severityCounts(open) {
  const shown = Object.entries(open).filter(([, number]) => number);
  return shown.map(([severity, number]) => el("span.severity-count", el("i", { class: `dot severity-${severity}` }), String(number), hiddenText(` ${severity} objections open`)));
}
