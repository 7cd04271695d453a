// The lines under the question: what the debate is doing, what it has used, and who takes part.

import { seatName } from "./debate-state.js";
import { el, show } from "./dom.js";
import { activityOf, count, duration, sentenceCase, shortModel, STATUS_WORDS } from "./labels.js";
import { usageWords } from "./panels.js";

/** Say what the debate is doing now, such as `live · Skeptic is writing`. */
export function statusWords(state) {
  if (state.status !== "running") return state.status === "paused" && state.ask ? "waiting for you" : STATUS_WORDS[state.status] || state.status;
  const busy = state.seats.filter((seat) => seat.state === "writing" || seat.state === "thinking");
  if (!busy.length) return "live";
  if (busy.length > 1) return `live · ${busy.length} speaking`;
  return `live · ${busy[0].name} is ${busy[0].state === "writing" ? "writing" : activityOf(busy[0].phase)}`;
}

/** Return the lines with `update()` and `tick()`, which only moves the clock. */
export function createHead(state, detail) {
  const pills = el("div.pills");
  const seats = el("ul.seats", { "aria-label": "Seats" });
  const clock = el("span.pill");
  let drawnSeats = "";

  function tick() {
    if (!state.startedAt) return;
    const worked = state.status === "done" && detail.record?.timing?.total_ms;
    const end = state.endedAt ? Date.parse(state.endedAt) : Date.now();
    clock.textContent = duration(Math.max(0, worked || end - Date.parse(state.startedAt)));
  }

  function update() {
    show(pills,
      el("span", { class: `pill pill-${state.status}` }, state.status === "running" && el("i.live-dot", { "aria-hidden": "true" }), statusWords(state)),
      el("span.pill", sentenceCase(state.protocol)), pill(roundWords(state)), pill(modelWords(state)), state.usage.calls > 0 && pill(usageWords(state)), clock);
    tick();
    drawSeats();
  }

  function drawSeats() {
    const winner = state.status === "done" ? state.sides?.winner || detail.record?.winner : null;
    const wanted = JSON.stringify([state.seats.map((seat) => [seat.id, seat.state, seat.phase]), winner, state.status]);
    if (wanted === drawnSeats) return;
    drawnSeats = wanted;
    show(seats, state.seats.map((seat) => seatChip(state, seat, winner)));
  }

  return { nodes: [pills, el("div.seatline", seats)], update, tick };
}

const pill = (words) => words && el("span.pill", words);

function roundWords({ round, settings, status }) {
  if (!round) return "";
  const most = settings.max_rounds || settings.round_count || settings.max_debate_rounds;
  if (status === "done") return count(round, "round");
  return `round ${round}${most ? ` of at most ${most}` : ""}`;
}

/** Name the model if all seats share one. */
function modelWords({ seats }) {
  return seats.length && new Set(seats.map((seat) => seat.model)).size === 1 ? `model ${shortModel(seats[0].model)}` : "";
}

function seatChip(state, seat, winner) {
  return el("li", { class: `seat seat-${seat.place % 8} is-${seat.state}`, title: seat.out?.argument || seat.position || seat.model },
    el("i.seat-dot", { "aria-hidden": "true" }), el(seat.out ? "del" : "b", seat.name),
    seat.position && el("span.seat-note", `“${seat.position}”`), el("span.seat-note", seatWords(state, seat)), winner === seat.id && el("span.seat-note", "won"));
}

function seatWords(state, seat) {
  if (seat.out) return `conceded to ${seatName(state, seat.out.to)}`;
  if (seat.state === "idle" || (state.status !== "running" && seat.state !== "failed")) return "";
  return seat.state === "thinking" ? activityOf(seat.phase) : seat.state;
}
