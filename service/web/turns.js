// Cards of turns: created once, then updated in place while the text streams in.

import { el, hiddenText, parseServerHtml, patchBlocks, show } from "./dom.js";
import { isCompact, seatName, seatOf } from "./debate-state.js";
import { activityOf, BREACH_WORDS, count, duration, oneDigit, percent, phaseTitle, plain, sentenceCase, shortModel, whole } from "./labels.js";
import { markQuotes } from "./quotes.js";

const BADGES = {
  fallback: ["fallback model", "The seat's own model failed, so another model spoke."],
  kept: ["previous answer kept", "The call failed, so the seat's previous answer stands."],
  failed: ["failed", "The call failed."],
  human: ["human", "A person wrote this turn."],
};

/** Return a card with `update(turn)`; `menuOf` makes the menu of a finished turn. */
export function createTurnCard(state, turn, jumpTo, menuOf) {
  return isCompact(turn) ? compactCard(state, turn) : fullCard(state, turn, jumpTo, menuOf);
}

function compactCard(state, turn) {
  const text = el("span.aside-text");
  const name = el("h3.aside-seat");
  const node = el("article", { class: `aside turn seat-${place(state, turn)}`, id: turn.key, tabindex: "-1" }, name, text);
  function update() {
    show(name, seatName(state, turn.seat));
    node.classList.toggle("is-live", turn.state === "thinking" || turn.state === "writing");
    show(text, ...compactText(state, turn));
  }
  return { node, update };
}

function compactText(state, turn) {
  if (turn.state === "thinking" || turn.state === "writing") return [el("span.muted", `${activityOf(turn.phase)}…`)];
  const read = turn.assessment;
  if (read?.kind === "conviction") return convictionText(state, read);
  if (read?.kind === "decision") return [el("b", read.decision === "stop" ? "Stop. " : "Continue. "), read.reasoning];
  if (read?.kind === "ruling") return [el("b", `Ruling, ${BREACH_WORDS[read.breach] || plain(read.breach)}: `), turn.text];
  const prefix = phaseTitle(turn.phase) && !["request", "end"].includes(turn.phase) ? el("b", `${sentenceCase(phaseTitle(turn.phase))}: `) : null;
  return [prefix, inlineHtml(turn)].filter(Boolean);
}

function convictionText(state, read) {
  if (!read.convinced) return [el("b", "Not convinced. "), read.reasoning];
  const whom = read.convinced_by ? `Concedes to ${seatName(state, read.convinced_by)}. ` : "Concedes, but names nobody. ";
  return [el("b", whom), read.argument || read.reasoning];
}

function inlineHtml(turn) {
  const node = el("span.aside-prose");
  if (turn.html) node.append(parseServerHtml(turn.html));
  else node.textContent = turn.text;
  return node;
}

function fullCard(state, turn, jumpTo, menuOf) {
  const parts = {
    name: el("h3.turn-seat"), model: el("span.turn-model"), phase: el("span.turn-phase"),
    facts: el("span.turn-facts"), badges: el("span.turn-badges"), answers: el("span.turn-answers"),
    menu: el("span.turn-menu"), body: el("div.prose.turn-body"), extras: el("div.turn-extras"),
  };
  const node = el("article", { class: `turn card seat-${place(state, turn)}`, id: turn.key, tabindex: "-1" },
    el("header.turn-head", parts.name, parts.model, parts.phase, parts.facts, parts.badges, parts.answers, parts.menu), parts.body, parts.extras);
  let shownHtml = null;
  let resets = 0;
  function update() {
    drawHead(state, turn, node, parts, jumpTo);
    if (turn.resets !== resets) {
      parts.body.replaceChildren();
      resets = turn.resets;
    }
    if (turn.patches.length) parts.body.querySelector(".placeholder")?.remove();
    for (const patch of turn.patches.splice(0)) patchBlocks(parts.body, patch.block, patch.html);
    const isOver = !["thinking", "writing"].includes(turn.state);
    if (isOver && shownHtml !== (turn.html ?? turn.text)) {
      shownHtml = turn.html ?? turn.text;
      setBody(parts.body, turn);
    }
    if (!isOver && !parts.body.firstChild) parts.body.append(placeholder(turn));
    if (isOver) {
      markQuotes(parts.body, turn);
      if (turn.id && turn.phase !== "remark" && !parts.menu.firstChild) parts.menu.append(menuOf(turn));
      show(parts.extras, extrasOf(turn));
    }
  }
  return { node, update };
}

export function setBody(body, { html, text }) {
  if (html !== null && html !== undefined) show(body, parseServerHtml(html));
  else show(body, el("p.plain-text", text));
}

export function placeholder(turn) {
  if (turn.state === "writing") return el("p.placeholder", turn.text);
  return el("p.placeholder.muted", `${activityOf(turn.phase)}…`);
}

function drawHead(state, turn, node, parts, jumpTo) {
  const seat = seatOf(state, turn.seat);
  const isRemark = turn.phase === "remark";
  node.classList.toggle("is-writing", turn.state === "writing");
  node.classList.toggle("is-live", turn.state === "writing" || turn.state === "thinking");
  node.classList.toggle("is-human", isRemark);
  node.setAttribute("aria-busy", String(turn.state === "writing" || turn.state === "thinking"));
  show(parts.name, isRemark ? "You" : seat?.name || turn.seat);
  show(parts.model, turn.state === "human" ? "" : shortModel(turn.model));
  show(parts.phase, isRemark ? "remark" : phaseTitle(turn.phase));
  show(parts.facts, factsOf(turn));
  const badge = !isRemark && BADGES[turn.state];
  show(parts.badges, badge && el("span", { class: `badge badge-${turn.state}`, title: badge[1] }, badge[0]), scoreBadge(turn), statedBadge(state, turn));
  show(parts.answers, answeredPoints(state, turn, jumpTo));
}

function place(state, turn) {
  return (seatOf(state, turn.seat)?.place ?? 7) % 8;
}

function factsOf(turn) {
  if (turn.state === "writing") return turn.tokens ? `writing · ${count(turn.tokens, "token")}` : "writing";
  if (turn.state === "thinking") return "thinking";
  const facts = [];
  if (turn.usage?.output_tokens) facts.push(count(turn.usage.output_tokens, "token"));
  if (turn.elapsed) facts.push(duration(turn.elapsed));
  return facts.join(" · ");
}

function scoreBadge(turn) {
  if (!turn.score) return null;
  if (turn.score.composite !== undefined) return turn.score.composite !== null && el("span.badge", { title: turn.score.reason }, `argument score ${turn.score.composite.toFixed(2)}`);
  const text = turn.score.isContested ? "score contested" : `score ${oneDigit(turn.score.total)}`;
  const cost = (turn.score.deductions || []).map((each) => `−${each.points} ${BREACH_WORDS[each.rule] || plain(each.rule)}`).join(", ");
  return el("span.badge", { title: cost || "Weighted score out of 10" }, cost ? `${text} (${cost})` : text);
}

function statedBadge(state, turn) {
  const stated = turn.assessment?.stated?.probabilities;
  if (!stated || turn.assessment.kind !== "argument") return null;
  const best = Object.entries(stated).sort((a, b) => b[1] - a[1])[0];
  return best && el("span.badge", `${state.outcomes?.[best[0]] || best[0]} ${percent(best[1])}`);
}

/** List the objections that an answer mentions, as links. */
function answeredPoints(state, turn, jumpTo) {
  if (turn.phase !== "propose" || !state.points.length || turn.state === "thinking") return null;
  const mentioned = new Set(turn.text.match(/\b[A-Z]\d{1,2}\b/g) || []);
  const found = state.points.filter((point) => mentioned.has(point.id) && point.raisedIn);
  if (!found.length) return null;
  return ["answers ", found.map((point) => el("button", { type: "button", class: "link", title: point.text, onclick: () => jumpTo(point.raisedIn) }, point.id))];
}

function extrasOf(turn) {
  return [thinkingOf(turn), toolsOf(turn), checksOf(turn), turn.rulings.map(rulingLine), quotesOf(turn), overlong(turn)].flat().filter(Boolean);
}

function thinkingOf(turn) {
  return turn.thinking && el("details.extra", el("summary", "Thinking"), el("p.plain-text.muted", turn.thinking));
}

function toolsOf(turn) {
  if (!turn.tools.length) return null;
  const line = (use) => el("li", el("code", `${use.name}(${Object.entries(use.arguments || {}).map(([key, value]) => `${key}: ${value}`).join(", ")})`), use.failed ? " failed: " : " → ", use.result);
  return el("details.extra", el("summary", `${turn.tools.length} tool ${turn.tools.length === 1 ? "call" : "calls"}`), el("ul", turn.tools.map(line)));
}

const VERDICTS = { supported: ["✓", "Supported"], contradicted: ["✗", "Contradicted"], unverifiable: ["?", "Could not be verified"] };

function checksOf(turn) {
  if (!turn.checks.length) return null;
  return el("ul.checks", { "aria-label": "Fact checks" }, turn.checks.map((claim) => {
    const [sign, word] = VERDICTS[claim.verdict] || ["?", plain(claim.verdict)];
    const source = claim.source && claim.source !== "no source" ? ` [${claim.source}]` : "";
    return el("li", { class: `check check-${claim.verdict}` }, el("i.sign", { "aria-hidden": "true" }, sign), el("span", el("b", `${word}: `), `${claim.claim}. `, claim.why, el("span.muted", source)));
  }));
}

const rulingLine = (ruling) => el("p.check.check-contradicted", el("i.sign", { "aria-hidden": "true" }, "!"), el("span", el("b", `Ruling, ${BREACH_WORDS[ruling.breach] || plain(ruling.breach)}: `), ruling.text));

const QUOTE_WORDS = { found: ["✓", "found"], altered: ["≈", "altered"], not_found: ["✗", "not found in the documents"] };

function quotesOf(turn) {
  const checked = turn.quotes.filter((quote) => quote.status !== "from_debate");
  if (!checked.length) return null;
  return el("ul.checks", { "aria-label": "Quotes" }, checked.map((quote) => {
    const [sign, word] = QUOTE_WORDS[quote.status] || ["?", plain(quote.status)];
    const where = quote.where ? ` in ${quote.where}` : "";
    return el("li", { class: `check check-${quote.status === "found" ? "supported" : "contradicted"}` },
      el("i.sign", { "aria-hidden": "true" }, sign),
      el("span", hiddenText("Quote "), `“${quote.text}” `, el("span.muted", `${word}${where}`), quote.reads && ` It reads in full: “${quote.reads}”`));
  }));
}

function overlong(turn) {
  if (!turn.length || turn.length.tokens <= turn.length.limit) return null;
  return el("p.muted", `Over the length limit: ${whole(turn.length.tokens)} of ${whole(turn.length.limit)} tokens.`);
}
