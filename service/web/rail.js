// The rail of rounds: where the debate is, who is speaking, and where to jump.

import { severityCounts } from "./charts.js";
import { seatName } from "./debate-state.js";
import { el, show } from "./dom.js";
import { count, oneDigit } from "./labels.js";

/** Return the rail with `update()`. `jump(key)` scrolls to a section. */
export function createRail(state, jump) {
  const list = el("ol.rail-list");
  const node = el("nav.rounds-rail", { "aria-label": "Rounds" }, el("h2.panel-title", "Rounds"), list);
  let drawn = "";
  function update() {
    const items = itemsOf(state);
    const wanted = JSON.stringify(items);
    if (wanted === drawn) return;
    drawn = wanted;
    show(list, items.map((item) => railItem(item, jump)));
  }
  return { node, update };
}

function railItem({ key, title, note, open, mark }, jump) {
  const content = [el("span.rail-title", title), note && el("span.rail-note", note), open && el("span.rail-note", severityCounts(open))];
  const inner = key ? el("button", { type: "button", class: "rail-link", onclick: () => jump(key) }, content) : el("span.rail-link", content);
  return el("li", { class: `rail-item is-${mark}`, "aria-current": mark === "now" ? "step" : null }, inner);
}

function itemsOf(state) {
  const items = [];
  if (state.templates?.count) items.push({ title: "Templates", note: `${state.templates.count} found`, mark: "past" });
  for (const section of state.sections) items.push(sectionItem(state, section));
  const answer = state.answer;
  items.push({ key: answer ? "answer" : null, title: "Answer", note: answer && answer.state !== "done" ? "being written" : "", mark: !answer ? "future" : answer.state === "done" ? "past" : "now" });
  const score = state.rating ? oneDigit(state.rating.score) : state.sides ? sidesNote(state) : "";
  if (state.protocol !== "forecast" && !(state.status === "done" && !score)) items.push({ title: "Score", note: state.demonstration ? "" : score, mark: score ? "past" : "future" });
  return items;
}

function sidesNote(state) {
  const { winner, draw } = state.sides;
  if (winner) return `${seatName(state, winner)} wins`;
  return draw ? "a draw" : "no winner";
}

function sectionItem(state, section) {
  const writing = state.status === "running" ? section.turns.filter((turn) => turn.state === "writing" || turn.state === "thinking") : [];
  const isLast = section === state.sections[state.sections.length - 1];
  const isNow = state.status === "running" && isLast && !state.answer;
  const open = section.open && Object.values(section.open).some(Boolean) ? section.open : null;
  const left = state.concessions.filter((each) => each.round === section.round).length;
  return { key: section.key, title: section.title, note: writing.length ? speakers(state, writing) : left && section.key !== "after" ? `${count(left, "concession")}` : "", open, mark: isNow ? "now" : "past" };
}

function speakers(state, turns) {
  if (turns.length > 1) return `${turns.length} writing`;
  return `${seatName(state, turns[0].seat)} ${turns[0].state}`;
}
