// The debate view, live and afterwards: transcript, rail of rounds, what is decided, the answer.

import { exportItems, deleteWithConfirmation, menu } from "./actions.js";
import { createAnswer } from "./answer.js";
import { finishDebate, getDebate, pauseDebate, resumeDebate } from "./api.js";
import { createComposer } from "./composer.js";
import { createHead, statusWords } from "./debate-head.js";
import { applyEvent, createState, isCompact, seatName, seatOf } from "./debate-state.js";
import { announce, button, el, show } from "./dom.js";
import { followDebate } from "./event-stream.js";
import { askFurther, createFamily, forkMenu } from "./forks.js";
import { activityOf, count, degradedWords, sentenceCase } from "./labels.js";
import { createPanels } from "./panels.js";
import { createRail } from "./rail.js";
import { createReadingPlace } from "./reading-place.js";
import { createTurnCard } from "./turns.js";

const EVENTS_PER_FRAME = 60;
const CATCHING_UP = 500; // milliseconds in which stored events arrive, which are not announced

export async function showDebate(view, id, tools) {
  show(view, el("p.empty", { role: "status" }, "Loading the debate…"));
  let detail;
  try {
    detail = await getDebate(id);
  } catch (error) {
    tools.showError(view, error, error.status === 404 ? "There is no debate with this id. It may have been deleted." : null);
    return null;
  }
  return new DebateView(view, detail, tools).open();
}

class DebateView {
  constructor(view, detail, tools) {
    Object.assign(this, { view, detail, tools, id: detail.id, queue: [], cards: new Map(), sections: new Map() });
    this.state = createState(detail.id);
    Object.assign(this.state, { question: detail.question, protocol: detail.protocol, status: detail.status, demonstration: detail.demonstration, outcomes: outcomesOf(detail.record) });
    this.order = detail.status === "running" ? "newest" : "oldest";
    this.report = (error) => tools.report(error.message);
    this.jump = (key) => this.jumpTo(key);
    this.place = createReadingPlace(() => this.drawFollow());
  }

  open() {
    this.build();
    this.stream = followDebate(this.id, { onEvent: (event) => this.receive(event), onState: (...given) => this.onStream(...given) });
    this.ticking = setInterval(() => this.head.tick(), 1000);
    return this;
  }

  close() {
    this.isClosed = true;
    this.stream.stop();
    this.place.stop();
    clearInterval(this.ticking);
    this.tools.showConnection(null);
  }

  // --- the frame ---

  build() {
    const { state } = this;
    if (state.status === "running") this.view.classList.add("was-live");
    this.rail = createRail(state, this.jump);
    this.head = createHead(state, this.detail);
    this.answer = createAnswer(state, this.detail, this.report);
    this.panels = createPanels(state, this.jump);
    this.composer = createComposer(this.id, this.report);
    this.family = createFamily(this.id);
    const place = (name, attributes = {}) => (this[name] = el("div", { class: name, ...attributes }));
    const { title } = this.detail;
    this.title = el("h1.question", { tabindex: "-1" }, title || state.question);
    this.orderButton = button("", () => this.switchOrder(), { class: "link" });
    this.followButton = button("", () => this.goToNewest(), { class: "follow-button", hidden: true });
    this.asideSwitch = button("Details", () => this.toggleAside(), { class: "button aside-switch", "aria-expanded": "false", "aria-controls": "decided" });
    this.aside = el("aside.decided", { id: "decided", "aria-label": "Details" });
    show(this.view,
      el("div.debate-head", this.title, title && el("p.muted", state.question), this.head.nodes, place("controls", { role: "group", "aria-label": "Debate" })),
      el("div.debate",
        this.rail.node,
        el("div.transcript-column", place("asked"), place("notices"), this.answer.node,
          el("div.transcript-head", el("h2.panel-title", "Transcript"), this.orderButton),
          place("transcript")),
        this.aside),
      this.followButton, this.asideSwitch);
    show(this.aside, this.composer.node, this.family.node, ...this.panels.nodes);
    this.family.load();
    this.update(new Set(["status", "seats", "rail", "answer", "order"]));
    this.tools.focusTitle(this.title, title || state.question);
    if (state.status === "running") this.place.follow();
  }

  // --- events ---

  receive(event) {
    this.queue.push(event);
    this.schedule();
  }

  schedule() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    const run = () => {
      this.isScheduled = false;
      if (!this.isClosed) this.flush();
    };
    if (document.hidden) setTimeout(run, 200);
    else requestAnimationFrame(run);
  }

  flush() {
    const events = this.queue.splice(0, EVENTS_PER_FRAME);
    const changed = new Set();
    const heard = [];
    for (const event of events) {
      for (const part of applyEvent(this.state, event)) changed.add(part);
      if (this.isCaughtUp) heard.push(event);
    }
    this.redraw(changed);
    this.followNewest(heard);
    this.announceEvents(heard);
    if (this.queue.length) this.schedule();
    else this.settling ??= setTimeout(() => this.onCaughtUp(), CATCHING_UP);
  }

  onCaughtUp() {
    this.isCaughtUp = true;
    if (!this.isClosed) this.drawControls();
  }

  onStream(name, value) {
    if (name === "open") this.tools.showConnection(null);
    if (name === "waiting" && this.state.status === "done") this.stream.stop();
    else if (name === "waiting") this.tools.showConnection(`Connection lost. Reconnecting in ${value} s…`, () => this.stream.retry());
    else if (name === "gone") this.onGone(value);
    else if (name === "ended") this.refreshDetail();
  }

  onGone(error) {
    this.state.isGone = true;
    this.tools.showConnection(error.status === 404 ? "This debate was deleted. What was on screen stays until you leave." : error.message);
    this.update(new Set(["status"]));
  }

  /** Load what only the record has: the rating, the due date, the exact totals. */
  async refreshDetail() {
    try {
      Object.assign(this.detail, await getDebate(this.id));
    } catch {
      return;
    }
    this.redraw(new Set(["status", "answer"]));
  }

  // --- drawing ---

  /** Draw what changed without moving what is read; a page that is still loading stays at its top. */
  redraw(changed) {
    const isLoading = !this.isCaughtUp && window.scrollY === 0;
    if (isLoading) this.update(changed);
    else this.place.keep(this.transcript, () => this.update(changed));
  }

  update(changed) {
    const { state } = this;
    for (const part of changed) {
      if (part.startsWith("turn:")) this.drawTurn(part.slice(5));
      else if (part.startsWith("section:")) this.drawSection(part.slice(8));
    }
    this.panels.update(changed);
    if (changed.has("status")) this.drawStatus();
    if (changed.has("status") || changed.has("usage") || changed.has("seats")) this.head.update();
    if (changed.has("out")) this.strikeOut();
    if (changed.has("degraded") || changed.has("status")) this.drawNotices();
    if (changed.has("answer") || changed.has("status")) this.answer.update();
    if (changed.has("order")) this.drawOrder();
    this.rail.update();
    document.title = `${state.status === "running" ? "● " : ""}${this.detail.title || state.question} · Contend`;
  }

  drawTurn(key) {
    let card = this.cards.get(key);
    const turn = this.state.turns[Number(key.slice(1))];
    if (!card) {
      card = createTurnCard(this.state, turn, this.jump, (ended) => forkMenu(this.id, ended, this.report, seatName(this.state, ended.seat)));
      this.cards.set(key, card);
      this.placeCard(turn, card.node);
    }
    card.update();
  }

  /** Put a card at the end of its section; seats that speak at once stand side by side. */
  placeCard(turn, node) {
    const { body } = this.sectionNode(turn.section);
    const isAtOnce = this.sectionState(turn.section).isAtOnce && !isCompact(turn) && turn.phase === "propose";
    if (!isAtOnce) return body.append(node);
    let group = body.lastElementChild;
    if (group?.dataset.phase !== turn.phase) body.append(group = el("div.side-by-side", { "data-phase": turn.phase }));
    const place = seatOf(this.state, turn.seat)?.place ?? 0;
    node.dataset.place = place;
    return group.insertBefore(node, [...group.children].find((other) => Number(other.dataset.place) > place) || null);
  }

  sectionState(key) {
    return this.state.sections.find((section) => section.key === key);
  }

  sectionNode(key) {
    const found = this.sections.get(key);
    if (found) return found;
    const { title } = this.sectionState(key);
    const made = { body: el("div.round-turns"), foot: el("p.decision", { hidden: true }) };
    made.node = el("section.round", { id: key, "aria-label": title }, el("h2.round-title", { "data-anchor": true }, title), made.body, made.foot);
    this.sections.set(key, made);
    if (this.order === "newest") this.transcript.prepend(made.node);
    else this.transcript.append(made.node);
    return made;
  }

  drawSection(key) {
    const node = this.sectionNode(key);
    const { decision } = this.sectionState(key);
    if (!decision || (!decision.why && decision.decision === "continue")) return;
    node.foot.hidden = false;
    const who = decision.isByModel && decision.seat ? `${seatName(this.state, decision.seat)}: ` : "";
    show(node.foot, el("b", decision.decision === "stop" ? "Stop. " : "Continue. "), `${who}${sentenceCase(decision.why)}`);
  }

  drawStatus() {
    const { state } = this;
    this.view.dataset.status = state.status;
    const isAsked = this.composer.update(state);
    const home = isAsked && matchMedia("(max-width: 820px)").matches ? this.asked : this.aside; // the phone hides the panels
    if (this.composer.node.parentNode !== home) home.prepend(this.composer.node);
    if (state.status === "running") this.view.classList.add("was-live");
    this.drawControls();
  }

  /** Draw the buttons if they change; a button that is replaced under the pointer would miss the click. */
  drawControls() {
    // Stored events of earlier pauses do not count.
    const status = this.isCaughtUp ? this.state.status : this.detail.status;
    const isOverBudget = status === "paused" && Boolean(this.state.outOfBudget);
    const wanted = this.state.isGone ? "gone" : `${status} ${isOverBudget}`;
    if (wanted === this.drawnControls) return;
    this.drawnControls = wanted;
    show(this.controls, this.controlButtons(status));
  }

  controlButtons(status) {
    const { state, id } = this;
    if (state.isGone) return [];
    const act = (action) => () => action(id).catch(this.report);
    const isRunning = status === "running";
    const buttons = [];
    if (isRunning) buttons.push(button("Pause", act(pauseDebate), { title: "Pause (p)" }), button("Finish now", act(finishDebate), { title: "Stop the rounds and write the answer" }));
    else if (status === "paused" && state.outOfBudget) buttons.push(button("Resume with twice the budget", act((debate) => resumeDebate(debate, "", twice(state.outOfBudget)))));
    else if (status !== "done") buttons.push(button("Resume", act(resumeDebate), { title: "Resume (p)" }));
    if (status === "done" && state.protocol !== "forecast") buttons.push(button("Ask further…", () => askFurther(id).catch(this.report)));
    buttons.push(menu("Export ▾", exportItems(id, this.report), { class: "button button-primary" }));
    if (!isRunning) buttons.push(button("Delete", () => this.remove(), { class: "button button-quiet" }));
    return buttons;
  }

  async remove() {
    if (await deleteWithConfirmation(this.id, this.state.question, this.report)) location.hash = "#/library";
  }

  strikeOut() {
    for (const { seat } of this.state.concessions) {
      for (const turn of this.state.turns) if (turn.seat === seat) this.cards.get(turn.key)?.node.classList.add("is-out");
    }
  }

  drawNotices() {
    const { state } = this;
    const serious = state.degradations.filter((entry) => entry.what !== "retried");
    const line = (entry) => {
      const { who, what } = degradedWords(entry, (id) => seatName(state, id));
      return el("li", el("b", `${who}: `), `${what}. `, el("span.muted", entry.why));
    };
    const title = serious.length ? `${count(state.degradations.length, "thing")} did not go as planned` : `${count(state.degradations.length, "call")} had to be tried again`;
    show(this.notices,
      state.error && el("div.notice.notice-error", { role: "alert" }, el("b", "The debate failed. "), state.error.text),
      state.outOfBudget ? el("div.notice", { role: "alert" }, el("b", "Paused. "), `${sentenceCase(state.outOfBudget.why)}.`) : state.budgetNote && el("div.notice", `${state.budgetNote}.`),
      state.demonstration && el("div.notice", "Argued by the built-in demo model: its scores are not meaningful."),
      state.degradations.length > 0 && el("details.notice", { open: serious.length > 0 && serious.length <= 3 && state.status === "done" }, el("summary", title), el("ul.plain-list", state.degradations.map(line))));
  }

  // --- where the reader is ---

  drawOrder() {
    show(this.orderButton, this.order === "newest" ? "Show oldest first" : "Show newest first");
    const nodes = this.state.sections.map((section) => this.sections.get(section.key)?.node).filter(Boolean);
    this.transcript.append(...(this.order === "newest" ? nodes.reverse() : nodes));
  }

  switchOrder() {
    this.order = this.order === "newest" ? "oldest" : "newest";
    this.drawOrder();
    announce(this.order === "newest" ? "Newest round first" : "Oldest round first");
  }

  jumpTo(key) {
    const node = document.getElementById(key);
    if (!node) return;
    this.closeAside();
    this.place.stopFollowing();
    this.place.scrollTo(node);
    const target = node.matches(".turn") ? node : node.querySelector(".turn, .round-title");
    target?.focus({ preventScroll: true });
    target?.classList.add("is-pointed-at");
    setTimeout(() => target?.classList.remove("is-pointed-at"), 1600);
  }

  newestNode() {
    if (this.state.answer) return this.answer.node;
    const { turns } = this.state;
    const turn = turns.slice(-10).find((each) => each.state === "writing" || each.state === "thinking") || turns[turns.length - 1];
    return turn && this.cards.get(turn.key)?.node;
  }

  goToNewest() {
    this.place.follow(this.newestNode());
    this.followButton.hidden = true;
  }

  followNewest(heard) {
    const started = heard.some((event) => (event.event.endsWith("_chunk") && !event.content) || event.event === "synthesis_start");
    if (!started || this.state.status !== "running") return this.drawFollow();
    const node = this.newestNode();
    if (this.place.isFollowing && node) {
      const { top } = node.getBoundingClientRect();
      if (top > window.innerHeight * 0.7 || top < 0) this.place.scrollTo(node);
    }
    return this.drawFollow();
  }

  drawFollow() {
    const node = this.newestNode();
    const box = node?.getBoundingClientRect();
    const isNews = this.state.status === "running" || (this.state.answer?.state === "done" && this.view.classList.contains("was-live"));
    const isAway = box && (box.bottom < 60 || box.top > window.innerHeight - 60);
    this.followButton.hidden = !(isNews && isAway && !this.place.isFollowing);
    if (this.followButton.hidden) return;
    const word = this.state.status === "done" ? "The answer is ready" : statusWords(this.state).replace("live · ", "");
    show(this.followButton, `${box.bottom < 60 ? "↑" : "↓"} ${sentenceCase(word)}`);
  }

  toggleAside() {
    const isOpen = this.view.classList.toggle("aside-open");
    this.asideSwitch.setAttribute("aria-expanded", String(isOpen));
    show(this.asideSwitch, isOpen ? "Back to the transcript" : "Details");
  }

  closeAside() {
    if (this.view.classList.contains("aside-open")) this.toggleAside();
  }

  announceEvents(events) {
    const words = events.map((event) => announcementOf(this.state, event)).filter(Boolean);
    if (words.length) announce(words.slice(-2).join(". "));
  }

  // --- keys ---

  onKey(key) {
    if (key === "j" || key === "k") this.step(key === "j" ? 1 : -1);
    else if (key === "p") this.pauseOrResume();
    else return false;
    return true;
  }

  step(direction) {
    const turns = [...this.view.querySelectorAll(".turn")];
    const at = turns.indexOf(document.activeElement?.closest(".turn"));
    const next = at < 0 ? turns.find((turn) => turn.getBoundingClientRect().top >= 0) : turns[at + direction];
    if (!next) return;
    this.place.stopFollowing();
    this.place.scrollTo(next);
    next.focus({ preventScroll: true });
  }

  pauseOrResume() {
    if (this.state.isGone || this.state.status === "done") return;
    const action = this.state.status === "running" ? pauseDebate : resumeDebate;
    action(this.id).catch(this.report);
  }
}

function outcomesOf(record) {
  const outcomes = record?.request?.prediction_context?.outcomes || [];
  return Object.fromEntries(outcomes.map((each) => [each.id, each.label || each.id]));
}

const twice = ({ budget, max_cost: cost }) => ({ ...(budget && { budget: 2 * budget }), ...(cost && { max_cost: 2 * cost }) });

function announcementOf(state, event) {
  const about = event.metadata || {};
  if (event.event === "round_start") return event.round ? `Round ${event.round}` : "The debate begins";
  if (event.event.endsWith("_chunk") && !event.content) return about.phase === "synthesize" ? "The answer is being written" : `${seatName(state, about.seat)} is ${activityOf(about.phase) === "thinking" ? "writing" : activityOf(about.phase)}`;
  if (event.event === "model_eliminated") return `${seatName(state, about.seat)} conceded to ${seatName(state, about.convinced_by)}`;
  if (event.event === "final_complete") return "Answer ready";
  if (event.event === "paused") return about.ask ? "The debate is waiting for you" : "Paused";
  if (event.event === "resumed") return "Resumed";
  if (event.event === "budget") return event.content;
  if (event.event === "error") return `The debate failed. ${event.content}`;
  return "";
}
