// Two debates side by side: what differs in their settings and results, their turns, and their answers.

import { getDebate, getDiff } from "./api.js";
import { el, parseServerHtml, show } from "./dom.js";
import { count, phaseTitle, sentenceCase, shortModel, STATUS_WORDS } from "./labels.js";

export async function showCompare(view, ids, tools) {
  show(view, el("p.empty", { role: "status" }, "Comparing…"));
  let found;
  let debates;
  try {
    [found, ...debates] = await Promise.all([getDiff(...ids), ...ids.map(getDebate)]);
  } catch (error) {
    tools.showError(view, error, error.status === 404 ? "There is no debate with one of these ids. It may have been deleted." : null);
    return;
  }
  const title = el("h1", { tabindex: "-1" }, "Two debates compared");
  show(view, el("div.page.compare", title,
    el("p.lead", debates[0].title || debates[0].question),
    el("div.compare-pair", debates.map(debateLink)),
    facts(found.facts, debates), turns(found, debates), answers(found.answer)));
  tools.focusTitle(title, "Comparison");
}

const nameOf = (debate) => debate.id.slice(0, 8);

function debateLink(debate, at) {
  return el("p", el("b", at ? "Second: " : "First: "), el("a", { href: `#/debates/${debate.id}` }, nameOf(debate)),
    el("span.muted", ` ${STATUS_WORDS[debate.status] || debate.status}, ${count(debate.round, "round")}`));
}

function facts(changed, debates) {
  if (!changed.length) return el("p", "Models, settings and results are the same.");
  const row = (each) => el("tr", el("th", { scope: "row" }, each.name), el("td", each.first), el("td", each.second));
  return el("div.wide", { tabindex: "0", role: "region", "aria-label": "What differs" }, el("table.compare-facts", el("caption.panel-title", "What differs"),
    el("thead", el("tr", el("td"), debates.map((each) => el("th", { scope: "col" }, nameOf(each))))), el("tbody", changed.map(row))));
}

function turns(found, debates) {
  return el("section", el("h2.panel-title", "Turns"), el("p.muted", sharedWords(found.shared_turns)), found.turns.map((each) => pair(each.turn, debates)));
}

function sharedWords(shared) {
  if (!shared) return "They have no turns in common.";
  return shared === 1 ? "The first turn is the same." : `The first ${count(shared, "turn")} are the same.`;
}

/** Show a turn of both debates beside each other; the answer and its rating have their own places. */
function pair(id, debates) {
  const both = debates.map((debate) => debate.record.turns.find((turn) => turn.id === id));
  const { round, phase, seat } = both.find(Boolean);
  if (phase === "synthesize" || phase === "score") return null;
  const names = Object.fromEntries(debates.flatMap((debate) => debate.seats).map((each) => [each.id, each.name]));
  const what = phase === "remark" ? "remark" : phaseTitle(phase);
  const title = [round ? `round ${round}` : "", names[seat] || (seat === "user" ? "you" : seat), what].filter(Boolean).join(", ");
  return el("section.compare-turn", el("h3", sentenceCase(title)), el("div.compare-pair", both.map((turn, at) => said(turn, debates[at]))));
}

function said(turn, debate) {
  if (!turn) return el("p.muted.compare-none", `Not in ${nameOf(debate)}`);
  const by = turn.status === "human" ? "a person" : shortModel(turn.model);
  const html = debate.html.turns[turn.id];
  return el("article.card.turn", { "aria-label": `In ${nameOf(debate)}` }, el("p.small.muted", `${nameOf(debate)} · ${by}`),
    el("div.prose", html ? parseServerHtml(html) : turn.text));
}

const MARKS = { both: "span", first: "del", second: "ins" };

function answers(words) {
  const isSame = words.every((each) => each.where === "both");
  const text = el("p.plain-text.compare-answer", words.map((each) => el(MARKS[each.where], each.text)));
  return el("section", el("h2.panel-title", "Answer"), isSame ? el("p.muted", "The answers are the same.") : text);
}
