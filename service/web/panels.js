// The panels beside the transcript. Each is drawn anew when its part changes.

import { bar, forecastChart, legend } from "./charts.js";
import { el, show } from "./dom.js";
import { seatName, seatOf } from "./debate-state.js";
import { count, dollars, oneDigit, percent, plain, POINT_WORDS, sentenceCase, shortModel, whole } from "./labels.js";

const SEVERITIES = ["critical", "major", "minor"];
const RANK = { open: 0, partial: 0, dropped: 1, resolved: 2 };

function panel(title, ...content) {
  return el("section.panel", el("h2.panel-title", title), ...content);
}

const DRAWN = {
  points: drawPoints,
  quality: drawQuality,
  forecast: drawForecast,
  sides: drawSides,
  concessions: drawConcessions,
  checks: drawChecks,
  rating: drawRating,
  documents: drawDocuments,
  usage: drawUsage,
};

/** Return the panels' nodes and a function that redraws the changed ones. */
export function createPanels(state, jumpTo) {
  const places = Object.fromEntries(Object.keys(DRAWN).map((name) => [name, el("div.panel-place", { hidden: true })]));
  function update(changed) {
    for (const [name, draw] of Object.entries(DRAWN)) {
      if (!changed.has(name)) continue;
      const content = draw(state, jumpTo);
      places[name].hidden = !content;
      show(places[name], content);
    }
  }
  return { nodes: Object.values(places), update };
}

function drawPoints(state, jumpTo) {
  if (!state.points.length) return null;
  const sorted = [...state.points].sort((a, b) => RANK[a.status] - RANK[b.status] || SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
  const number = (...statuses) => state.points.filter((point) => statuses.includes(point.status)).length;
  const dropped = number("dropped");
  const title = `Objections · ${number("open", "partial")} open, ${number("resolved")} resolved${dropped ? `, ${dropped} dropped` : ""}`;
  return panel(title, el("ul.points", sorted.map((point) => pointRow(state, point, jumpTo))));
}

/** List the replies to a point and what the critic said about it, in their order. */
function pointHistory(state, { replies, reviews }) {
  const steps = [
    ...replies.map((each) => ({ ...each, words: each.text, order: 0 })),
    ...reviews.map((each) => ({ ...each, words: [POINT_WORDS[each.status] || each.status, each.note].filter(Boolean).join(": "), order: 1 })),
  ].sort((a, b) => a.round - b.round || a.order - b.order);
  if (!steps.length) return null;
  const row = (step) => el("tr", el("td.muted", step.round), el("td", el("b", seatName(state, step.seat)), " ", step.words));
  return el("details.extra", el("summary", replies.length ? count(replies.length, "reply", "replies") : "What followed"),
    el("table.point-steps", el("thead", el("tr", el("th", "Round"), el("th", "What was said"))), el("tbody", steps.map(row))));
}

function pointRow(state, point, jumpTo) {
  const target = point.settledIn || point.raisedIn;
  const settled = point.settledRound ? ` in round ${point.settledRound}` : "";
  const fate = `${point.severity} · ${POINT_WORDS[point.status] || point.status}${settled}`;
  const text = [el("b", point.id), " ", el("span.point-text", point.text), el("small", fate)];
  return el("li", { class: `point point-${point.status}` },
    el("i", { class: `dot severity-${point.severity}`, "aria-hidden": "true" }),
    el("div.point-body", target ? el("button", { type: "button", class: "point-link", title: point.settledIn ? "Show the turn that settled it" : "Show the turn that raised it", onclick: () => jumpTo(target) }, text) : el("span.point-link", text), pointHistory(state, point)));
}

function drawQuality(state) {
  if (!state.qualityScores.length) return null;
  const who = seatName(state, state.qualityScores[0].seat);
  const place = seatOf(state, state.qualityScores[0].seat)?.place ?? 0;
  return panel(`Answer quality, by the ${who}`, state.qualityScores.map((each) => bar(`Round ${each.round}`, each.score, 10, { seat: place % 8 })));
}

function drawForecast(state) {
  const { rounds: stated, result } = state.forecast;
  if (!stated.length && !result) return null;
  const seats = state.seats.filter((seat) => stated.some((each) => each.seat === seat.id));
  const rounds = [...new Set(stated.map((each) => each.round))].sort((a, b) => a - b);
  const ids = Object.keys(state.outcomes || {}).length ? Object.keys(state.outcomes) : [...new Set(stated.flatMap((each) => Object.keys(each.probabilities)))];
  const finals = Object.fromEntries((result?.probability_distribution || []).map((each) => [each.outcome_id, each.probability]));
  const charts = (ids.length === 2 ? ids.slice(0, 1) : ids).map((id) => {
    const series = {};
    for (const each of stated) (series[each.seat] ??= {})[each.round] = each.probabilities[id];
    return forecastChart({ label: state.outcomes?.[id] || id, seats, rounds, series, final: finals[id] ?? null });
  });
  const bars = result && ids.map((id) => bar(state.outcomes?.[id] || id, finals[id], 1, { text: finals[id] === undefined || finals[id] === null ? "–" : percent(finals[id]) }));
  return [panel("Probabilities by round", charts, legend(seats), bars && el("div.bars", bars), agreement(result)), insights(result)].filter(Boolean);
}

function agreement(result) {
  if (!result) return null;
  const known = [["agreement", result.consensus_score], ["confidence", result.report?.confidence]].filter(([, value]) => typeof value === "number");
  return el("p.muted.small", sentenceCase(known.map(([name, value]) => `${name} ${percent(value)}`).join(", ")), result.report?.partial ? ". Some parts are missing." : "");
}

function insights(result) {
  if (!result?.key_insights?.length) return null;
  return panel("What moved the forecast", el("ul.plain-list", result.key_insights.map((each) => el("li", each.insight, el("small.muted", ` ${each.source_role}, round ${each.round}, ${each.impact} impact`)))));
}

function drawSides(state) {
  if (!state.sides) return null;
  const { standings, winner, no_winner: noWinner, draw } = state.sides;
  const words = winner ? `${seatName(state, winner)} wins.` : draw ? "A draw." : noWinner ? `No winner: ${noWinner}.` : "";
  return panel("Scores out of 10", standings.map((side) => bar(side.name, side.total, 10, { seat: (seatOf(state, side.seat)?.place ?? 0) % 8 })),
    words && el("p.small", words),
    el("details.extra", el("summary", "By criterion"), standings.map((side) => [el("h3.small", side.name), Object.entries(side.breakdown || {}).map(([name, value]) => bar(sentenceCase(plain(name)), value, 10, { seat: (seatOf(state, side.seat)?.place ?? 0) % 8 }))])));
}

function drawConcessions(state, jumpTo) {
  if (!state.concessions.length) return null;
  return panel("Concessions", el("ul.plain-list", state.concessions.map((each) => el("li",
    el("del", { class: `seat-name seat-${(seatOf(state, each.seat)?.place ?? 0) % 8}` }, seatName(state, each.seat)), " to ", el("b", seatName(state, each.to)), `, round ${each.round}`,
    el("p.small", each.argument || each.why || "No argument named."),
    each.quote && el("p.quote.small", `“${each.quote}” `, el("span.muted", each.isQuoteFound ? "✓ said by that seat" : "✗ not found in what it said"))))));
}

const SIGNS = { supported: "✓", contradicted: "✗", unverifiable: "?" };

function drawChecks(state, jumpTo) {
  if (!state.checks.length) return null;
  return panel("Fact checks", el("ul.plain-list", state.checks.map((claim) => el("li", { class: `check check-${claim.verdict}` },
    el("i.sign", { "aria-hidden": "true" }, SIGNS[claim.verdict] || "?"),
    el("button", { type: "button", class: "point-link", onclick: () => jumpTo(claim.turn) }, claim.claim, el("small", `${seatName(state, claim.seat)} · ${claim.verdict}`))))));
}

function drawRating(state) {
  const rating = state.rating;
  if (!rating) return null;
  if (state.demonstration) return panel("Rating", el("p.small", "Not meaningful (demo model)."));
  const names = ["correctness", "completeness", "clarity", "depth"];
  return panel(`Rating by the judge · ${oneDigit(rating.score)}`, names.map((name) => bar(sentenceCase(name), rating[name], 10)), el("p.small", rating.why), el("p.small.muted", `Rated by ${shortModel(rating.judge_model)}`));
}

function drawDocuments(state) {
  const names = [...state.documents.map((each) => `${each.name} (${count(each.pages, "page")})`), ...state.images.map((each) => each.name || each)];
  return names.length ? panel("Documents", el("ul.plain-list.small", names.map((name) => el("li", name)))) : null;
}

function drawUsage(state) {
  const { calls, input, output, bySeat } = state.usage;
  if (!calls) return null;
  const most = Math.max(1, ...Object.values(bySeat));
  const rows = state.seats.filter((seat) => bySeat[seat.id]).map((seat) => bar(seat.name, bySeat[seat.id], most, { seat: seat.place % 8, text: whole(bySeat[seat.id]) }));
  return panel("Tokens written", rows, el("p.small.muted", `${count(calls, "call")}, ${whole(input)} tokens read, ${whole(output)} written, ${costWords(state)}`));
}

export function costWords(state) {
  return dollars(state.usage.isCostKnown ? state.usage.cost : null);
}

export function usageWords(state) {
  const { calls, input, output } = state.usage;
  return `${count(calls, "call")} · ${whole(input + output)} tokens · ${costWords(state)}`;
}

