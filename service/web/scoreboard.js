// The scoreboard: forecasts that are due, how good the resolved ones were, and their calibration.

import { getDebate, getScoreboard, resolveForecast } from "./api.js";
import { calibrationPlot } from "./charts.js";
import { announce, button, el, show } from "./dom.js";
import { count, dueWords, plain, sentenceCase, whole } from "./labels.js";

const TABLES = [["pools", "By pooling method"], ["roles", "By role"], ["models", "By model"], ["rounds", "By round"]];

export async function showScoreboard(view, tools) {
  const heading = el("h1", { tabindex: "-1" }, "Scoreboard");
  const content = el("div", el("p.muted", { role: "status" }, "Loading…"));
  show(view, el("div.page", heading, el("p.lead", "How well the forecasts matched what happened."), content));
  tools.focusTitle(heading, "Scoreboard");
  await load(content, tools);
  return null;
}

async function load(content, tools) {
  let board;
  try {
    board = await getScoreboard();
  } catch (error) {
    show(content, el("p.problem", { role: "alert" }, error.message), button("Try again", () => load(content, tools)));
    return;
  }
  const again = () => load(content, tools);
  const { due = [], open = [], scores = {} } = board;
  const calibration = board.calibration || (scores.calibration || []).map(({ count: n, forecast, observed }) => ({ n, mean_forecast: forecast, share_true: observed }));
  const waiting = open.filter((each) => !due.some((other) => other.id === each.id));
  show(content, due.length > 0 && forecastList("Due now", due, tools, again), resolvedPart(scores, calibration), waiting.length > 0 && forecastList("Open", waiting, tools, again),
    !due.length && !open.length && !scores.resolved && el("p.empty", "There are no forecasts yet. ", el("a", { href: "#/" }, "Ask for one"), " with the forecast protocol."));
}

function resolvedPart(scores, calibration) {
  if (!scores.resolved) return el("p.muted", "No forecast has been resolved yet, so there is nothing to score.");
  return el("section.scoreboard",
    el("div", el("h2.panel-title", "Calibration"), calibrationPlot(calibration)),
    el("div", el("h2.panel-title", `Scores of ${count(scores.resolved, "resolved forecast")}`), el("p.small.muted", "Lower is better. A Brier score of 0 is perfect; saying 50 % for a yes-or-no question gives 0.5."),
      TABLES.filter(([name]) => scores[name]?.length).map(([name, title]) => scoreTable(title, scores[name]))));
}

function scoreTable(title, rows) {
  const best = Math.min(...rows.map((row) => row.brier));
  const number = (value) => (typeof value === "number" ? value.toFixed(3) : "–");
  return el("table.score-table", el("caption", title),
    el("thead", el("tr", ["", "Forecasts", "Brier", "Log loss"].map((name, at) => (at ? el("th", { scope: "col" }, name) : el("td"))))),
    el("tbody", rows.map((row) => el("tr", { class: row.brier === best && rows.length > 1 ? "is-best" : null }, el("th", { scope: "row" }, row.name.includes(":") ? row.name : sentenceCase(plain(row.name))), el("td", whole(row.count)), el("td", number(row.brier)), el("td", number(row.log_loss))))));
}

function forecastList(title, summaries, tools, again) {
  return el("section.forecasts", el("h2.panel-title", title), el("ul.debates", summaries.map((each) => forecastRow(each, tools, again))));
}

function forecastRow(summary, tools, again) {
  const choices = el("span.row-choices");
  const ask = async () => {
    try {
      const { record } = await getDebate(summary.id);
      const outcomes = record.request?.prediction_context?.outcomes || [];
      show(choices, el("span.muted.small", "What came true?"), outcomes.map((each) => button(each.label || each.id, () => resolve(each.id))));
      choices.querySelector("button")?.focus();
    } catch (error) {
      tools.report(error.message);
    }
  };
  const resolve = (outcome) => resolveForecast(summary.id, outcome).then(() => { announce("Recorded"); return again(); }).catch((error) => tools.report(error.message));
  show(choices, button("Resolve", ask, { "aria-label": `Resolve ${summary.question}` }));
  return el("li.debate-row.forecast-row", el("span.row-state", summary.due ? dueWords(summary.due) : "no date"), el("span.row-main", el("a.row-question", { href: `#/debates/${summary.id}` }, summary.question)), choices);
}
