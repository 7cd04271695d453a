// The answer on top of a debate: it streams like a turn, and ends with why the debate stopped.

import { createRating } from "./actions.js";
import { resolveForecast } from "./api.js";
import { cautionsOf, seatOf } from "./debate-state.js";
import { button, el, patchBlocks, show } from "./dom.js";
import { dueWords, sentenceCase, shortModel, STOP_WORDS } from "./labels.js";
import { markQuotes } from "./quotes.js";
import { placeholder, setBody } from "./turns.js";

/** Return the answer's place with `update()`; `detail` has what events do not say. */
export function createAnswer(state, detail, report) {
  const head = el("header.answer-head");
  const cautions = el("div.cautions");
  const body = el("div.prose.answer-body");
  const foot = el("footer.answer-foot");
  const card = el("article.answer.turn", { tabindex: "-1", "aria-label": "Answer" }, head, cautions, body, foot);
  const node = el("div", { id: "answer" });
  let resets = 0;
  let shownHtml = null;
  let shownFoot = null;
  const rating = createRating(state.id, report);

  function update() {
    const { answer } = state;
    if (!answer) return;
    if (!card.parentNode) node.append(card);
    card.classList.toggle("is-writing", answer.state === "writing");
    card.setAttribute("aria-busy", String(answer.state !== "done"));
    drawBody(answer);
    show(head, headOf(state, answer));
    show(cautions, cautionsOf(state).map((text) => el("p.notice", { role: "note" }, `⚠ ${text}`)));
    drawFoot();
  }

  /** Draw the foot if it changes; a button that is replaced under the pointer would miss the click. */
  function drawFoot() {
    rating.show(detail.user_rating);
    const wanted = JSON.stringify([state.stop, state.status, detail.resolution, detail.due]);
    if (wanted === shownFoot) return;
    shownFoot = wanted;
    show(foot, stopWords(state), state.status === "done" && rating.node, resolution(state, detail, report, update));
  }

  function drawBody(answer) {
    if (answer.resets !== resets) body.replaceChildren();
    resets = answer.resets;
    if (answer.patches.length) body.querySelector(".placeholder")?.remove();
    for (const patch of answer.patches.splice(0)) patchBlocks(body, patch.block, patch.html);
    const wanted = answer.html ?? answer.text;
    if (answer.state === "done" && shownHtml !== wanted) {
      shownHtml = wanted;
      setBody(body, answer);
      markQuotes(body, answer);
    }
    if (!body.firstChild) body.append(placeholder({ ...answer, phase: "synthesize" }));
  }

  return { node, update };
}

function headOf(state, answer) {
  const writer = [seatOf(state, answer.seat)?.name, shortModel(answer.model)].filter(Boolean).join(" · ");
  return [el("h2.answer-title", "Answer"), el("span.turn-model", writer),
    answer.turnStatus === "kept_previous" && el("span.badge.badge-kept", "the latest answer, because the final one could not be written"),
    answer.turnStatus === "fallback_model" && el("span.badge.badge-fallback", "fallback model")];
}

function stopWords({ stop }) {
  if (!stop) return null;
  const why = stop.why || STOP_WORDS[stop.reason] || stop.reason;
  return el("p.stop-words", el("b", stop.round ? `Stopped after round ${stop.round}: ` : "Stopped: "), `${why.replace(/[.!?]$/, "")}.`);
}

/** Let a person record which outcome of a finished forecast came true. */
function resolution(state, detail, report, update) {
  if (state.protocol !== "forecast" || state.status !== "done") return null;
  if (detail.resolution) return el("p.small", el("b", "Came true: "), state.outcomes?.[detail.resolution] || detail.resolution);
  const resolve = (outcome) => resolveForecast(state.id, outcome).then((summary) => {
    detail.resolution = summary.resolution;
    update();
  }).catch(report);
  const due = detail.due ? `${sentenceCase(dueWords(detail.due))}. ` : "";
  return el("div.resolve", el("span.rating-label", `${due}What came true?`), Object.entries(state.outcomes || {}).map(([id, label]) => button(label, () => resolve(id))));
}
