// The state of a debate as a page shows it, built from events alone: no DOM, no clock, no requests.

const NOT_SHOWN = new Set(["score", "fact_check"]);
const COMPACT = new Set(["request", "ruling", "end", "conviction_check", "judge_continue", "positions"]);
const SETTLED = new Set(["resolved", "dropped"]);

export function createState(id) {
  return {
    id, question: "", protocol: "", settings: {}, status: "running", demonstration: false,
    seats: [], documents: [], images: [], templates: null,
    sections: [], turns: [], open: new Map(), byId: new Map(), points: [], qualityScores: [], rating: null, sides: null,
    concessions: [], checks: [], forecast: { rounds: [], result: null }, degradations: [],
    usage: { calls: 0, input: 0, output: 0, cost: 0, isCostKnown: true, bySeat: {} },
    round: null, stop: null, answer: null, ask: null, error: null, startedAt: null, endedAt: null, lastSeq: 0,
  };
}

/** Apply one event; return the names of the parts that changed. Turns are named `turn:KEY`. */
export function applyEvent(state, event) {
  if (event.seq && event.seq <= state.lastSeq) return [];
  state.lastSeq = event.seq || state.lastSeq;
  const apply = event.event.endsWith("_chunk") ? applyChunk : HANDLERS[event.event];
  return apply ? apply(state, event, event.metadata || {}) : [];
}

export const seatOf = (state, id) => state.seats.find((seat) => seat.id === id);
export const seatName = (state, id) => seatOf(state, id)?.name || id || "";
export const isCompact = (turn) => COMPACT.has(turn.phase);

const HANDLERS = {
  debate_start: start,
  rag_complete(state, event, about) {
    state.templates = { count: (about.templates || []).length, text: event.content };
    return ["rail"];
  },
  round_start: startRound,
  seat_complete: completeTurn,
  round_complete: completeRound,
  judge_decision: decide,
  early_stop(state, event, about) {
    state.stop = { ...state.stop, reason: about.reason, why: event.content, round: event.round, isEarly: true };
    return ["answer"];
  },
  model_eliminated: concede,
  fact_check: checkFacts,
  scores: score,
  synthesis_start(state, event, about) {
    openAnswer(state, about);
    return ["answer", "rail", "seats"];
  },
  final_complete: finishAnswer,
  degraded: degrade,
  budget(state, event) {
    state.budgetNote = event.content;
    return ["status"];
  },
  paused(state, event, about) {
    const outOfBudget = about.reason === "budget" ? { why: event.content, budget: about.budget, max_cost: about.max_cost } : null;
    Object.assign(state, { status: "paused", ask: about.ask || null, outOfBudget, endedAt: event.ts });
    markIdle(state);
    return ["status", "seats", "rail"];
  },
  resumed(state) {
    Object.assign(state, { status: "running", ask: null, error: null, outOfBudget: null, endedAt: null });
    return ["status", "seats"];
  },
  error(state, event, about) {
    Object.assign(state, { status: "failed", error: { text: event.content, model: about.model }, endedAt: event.ts });
    markIdle(state);
    return ["status", "seats", "rail"];
  },
  complete(state, event) {
    Object.assign(state, { status: "done", endedAt: event.ts, ask: null });
    markIdle(state);
    return ["status", "answer", "seats", "rail", "usage"];
  },
};

function start(state, event, about) {
  Object.assign(state, {
    question: event.content, protocol: about.protocol, settings: about.settings || {}, startedAt: event.ts,
    documents: about.documents || [], images: about.images || [], demonstration: Boolean(about.demonstration),
  });
  state.seats = (about.seats || []).map((seat, place) => ({ ...seat, place, state: "waiting", out: null }));
  return ["status", "seats", "documents"];
}

function startRound(state, event, about) {
  state.round = event.round;
  const section = sectionFor(state, event.round, "");
  Object.assign(section, { isAtOnce: Boolean(about.at_once), isOpen: true });
  for (const seat of state.seats) if (!seat.out) seat.state = (about.active || []).includes(seat.id) ? "waiting" : "idle";
  return ["rail", "seats", "status", `section:${section.key}`];
}

/** Return the section of the transcript a turn belongs to; statements after the last round have their own. */
function sectionFor(state, round, phase) {
  const isAfter = Boolean(state.stop) && phase !== "remark" && phase !== "";
  const key = isAfter ? "after" : `round-${round ?? 0}`;
  const found = state.sections.find((section) => section.key === key);
  if (found) return found;
  const made = { key, round, title: sectionTitle(state, round, isAfter), turns: [], decision: null, open: null, isAtOnce: false };
  state.sections.push(made);
  return made;
}

function sectionTitle(state, round, isAfter) {
  if (isAfter) return { moderated: "Closing statements", forum: "Verdict" }[state.protocol] || "After the rounds";
  if (round) return `Round ${round}`;
  return state.protocol === "moderated" ? "Opening statements" : "Initial answers";
}

const keyOf = (event, about) => `${event.round}.${about.phase}.${about.seat}`;

function applyChunk(state, event, about) {
  const seat = seatOf(state, about.seat);
  if (seat && !seat.out) Object.assign(seat, { state: event.content ? "writing" : "thinking", phase: about.phase, since: event.ts });
  if (about.phase === "synthesize") return streamAnswer(state, event, about);
  if (NOT_SHOWN.has(about.phase)) return event.content ? [] : ["seats", "rail"];
  const turn = openTurn(state, event, about);
  if (!event.content) restart(turn);
  else stream(turn, event, about);
  return [`turn:${turn.key}`, "seats", "rail"];
}

function openTurn(state, event, about) {
  const name = keyOf(event, about);
  if (state.open.has(name)) return state.open.get(name);
  const section = sectionFor(state, event.round, about.phase);
  const turn = {
    key: `t${state.turns.length}`, id: null, section: section.key, round: event.round, phase: about.phase, seat: about.seat, role: about.role,
    model: about.model, state: "thinking", startedAt: event.ts, text: "", html: null, patches: [], resets: 0, tokens: 0,
    usage: null, elapsed: null, assessment: null, quotes: [], tools: [], thinking: null, checks: [], rulings: [], score: null, notes: [],
  };
  state.open.set(name, turn);
  state.turns.push(turn);
  section.turns.push(turn);
  return turn;
}

function restart(turn) {
  if (turn.text || turn.patches.length) turn.resets += 1;
  Object.assign(turn, { state: "thinking", text: "", patches: [] });
}

function stream(turn, event, about) {
  turn.state = "writing";
  turn.text += event.content;
  turn.tokens = about.tokens_so_far || turn.tokens;
  turn.model = about.model || turn.model;
  if (about.html !== undefined) addPatch(turn.patches, about.block || 0, about.html);
}

/** Keep only the patches that still matter: a new one replaces everything from its block on. */
function addPatch(patches, block, html) {
  while (patches.length && patches[patches.length - 1].block >= block) patches.pop();
  patches.push({ block, html });
}

const TURN_STATES = { failed: "failed", kept_previous: "kept", fallback_model: "fallback", human: "human" };

function completeTurn(state, event, about) {
  addUsage(state, about);
  const seat = seatOf(state, about.seat);
  if (seat && !seat.out) Object.assign(seat, { state: about.status === "failed" ? "failed" : "done", phase: null });
  const read = about.assessment;
  if (read?.kind === "score") return scoreArgument(state, read);
  if (about.phase === "synthesize") return completeAnswer(state, event, about);
  if (NOT_SHOWN.has(about.phase)) return ["seats", "usage"];
  const turn = openTurn(state, event, about);
  state.open.delete(keyOf(event, about));
  if (about.turn) state.byId.set(about.turn, turn);
  Object.assign(turn, {
    id: about.turn, state: TURN_STATES[about.status] || "done", text: event.content, html: about.html ?? null, patches: [],
    model: about.model || turn.model, usage: about.usage || null, elapsed: about.elapsed_ms ?? null, assessment: read || null, length: about.length || null,
    quotes: about.quotes || [], tools: about.tool_calls || [], thinking: about.thinking || null,
  });
  return [`turn:${turn.key}`, "seats", "usage", "rail", ...readAssessment(state, turn, read)];
}

function addUsage(state, { usage, seat }) {
  if (!usage) return;
  const total = state.usage;
  total.calls += 1;
  total.input += usage.input_tokens || 0;
  total.output += usage.output_tokens || 0;
  total.bySeat[seat] = (total.bySeat[seat] || 0) + (usage.output_tokens || 0);
  if (usage.cost_usd === null || usage.cost_usd === undefined) total.isCostKnown = false;
  else total.cost += usage.cost_usd;
}

function readAssessment(state, turn, read) {
  if (read?.kind === "critique") return readCritique(state, turn, read);
  if (read?.kind === "argument") return readProbabilities(state, turn, read);
  if (read?.kind === "ruling") {
    const statement = state.byId.get(read.turn);
    statement?.rulings.push({ breach: read.breach, text: turn.text });
    return statement ? [`turn:${statement.key}`] : [];
  }
  return [];
}

function readCritique(state, turn, read) {
  for (const point of read.points || []) trackPoint(state, point, turn);
  if (read.score !== null && read.score !== undefined) state.qualityScores.push({ round: turn.round, score: read.score, seat: turn.seat });
  return ["points", "quality"];
}

/** Record where a point was raised, what was said about it, and where it was settled; its text stays as it was raised. */
function trackPoint(state, point, turn) {
  let found = state.points.find((each) => each.id === point.id);
  if (!found) {
    found = { ...point, note: "", replies: [], reviews: [], raisedIn: turn?.key || null, settledIn: null, settledRound: null };
    state.points.push(found);
  } else if (turn) found.reviews.push({ round: turn.round, seat: turn.seat, status: point.status, note: point.note || (point.text === found.text ? "" : point.text) });
  if (point.reviews) Object.assign(found, { replies: point.replies, reviews: point.reviews });
  if (SETTLED.has(point.status) && !SETTLED.has(found.status)) Object.assign(found, { settledIn: turn?.key || null, settledRound: turn?.round ?? state.round });
  if (!SETTLED.has(point.status)) Object.assign(found, { settledIn: null, settledRound: null });
  Object.assign(found, { severity: point.severity, status: point.status, text: found.text || point.text });
}

const NOT_DEBATING = new Set(["judge", "synthesizer", "moderator", "fact_checker"]);
const NAMES = new Intl.ListFormat("en-GB");
const MISSING = new Set(["failed", "sat_out", "kept_previous", "generic_feedback", "judge_silent", "not_merged"]);

/** Return what a reader must know before the answer: open critical objections, missing turns, a judge that also debates. */
export function cautionsOf(state) {
  const open = state.points.filter((point) => point.severity === "critical" && !SETTLED.has(point.status)).map((point) => point.id);
  const rated = new Set(state.degradations.filter((each) => each.what === "not_rated").map((each) => `${each.seat} ${each.round}`));
  const missing = state.degradations.filter((each) => each.seat && MISSING.has(each.what) && !rated.has(`${each.seat} ${each.round}`));
  const who = [...new Set(missing.map((each) => `${seatName(state, each.seat)} (${each.round ? `round ${each.round}` : "start"})`))];
  const judging = new Set(state.seats.filter((seat) => seat.role === "judge").map((seat) => seat.model));
  const sharing = state.demonstration ? [] : state.seats.filter((seat) => !NOT_DEBATING.has(seat.role) && judging.has(seat.model)).map((seat) => seat.name);
  return [
    open.length && `${open.length} critical objection${open.length === 1 ? " is" : "s are"} still open: ${open.join(", ")}.`,
    who.length && `Turns are missing or were replaced: ${who.join(", ")}.`,
    sharing.length && `The judge uses the same model as ${NAMES.format(sharing)}, so treat its judgment with caution.`,
  ].filter(Boolean);
}

function readProbabilities(state, turn, read) {
  const stated = read.stated?.probabilities || {};
  if (!Object.keys(stated).length) return [];
  const others = state.forecast.rounds.filter((each) => each.round !== turn.round || each.seat !== turn.seat);
  state.forecast.rounds = [...others, { round: turn.round, seat: turn.seat, probabilities: stated }];
  return ["forecast"];
}

function scoreArgument(state, read) {
  const turn = state.byId.get(read.argument);
  if (!turn) return ["seats", "usage"];
  turn.score = { composite: read.composite, scores: read.scores, reason: read.reason };
  return [`turn:${turn.key}`, "seats", "usage"];
}

function completeRound(state, event, about) {
  for (const point of about.points || []) trackPoint(state, point, null);
  const section = state.sections.find((each) => each.key === `round-${event.round ?? 0}`);
  if (section) Object.assign(section, { isOpen: false, open: countOpen(about.points || []) });
  return ["points", "rail"];
}

function countOpen(points) {
  const open = { critical: 0, major: 0, minor: 0 };
  for (const point of points) if (!SETTLED.has(point.status)) open[point.severity] += 1;
  return open;
}

function decide(state, event, about) {
  const section = state.sections.find((each) => each.key === `round-${event.round ?? 0}`);
  const why = event.content === about.decision ? "" : event.content;
  if (section) section.decision = { decision: about.decision, why, isByModel: Boolean(about.by_model), seat: about.seat };
  if (about.decision === "stop") state.stop = { reason: about.reason, why: event.content, round: event.round, isEarly: false };
  return ["answer", "rail", ...(section ? [`section:${section.key}`] : [])];
}

function concede(state, event, about) {
  const concession = { seat: about.seat, to: about.convinced_by, argument: about.argument, quote: about.quote, isQuoteFound: about.quote_found, why: event.content, round: event.round };
  state.concessions.push(concession);
  const seat = seatOf(state, about.seat);
  if (seat) Object.assign(seat, { out: concession, state: "out" });
  return ["concessions", "seats", "out", "rail"];
}

function checkFacts(state, event, about) {
  const turn = state.byId.get(about.turn);
  if (!turn) return [];
  turn.checks = about.claims || [];
  turn.isChecked = true;
  state.checks.push(...turn.checks.map((claim) => ({ ...claim, turn: turn.key, seat: turn.seat })));
  return [`turn:${turn.key}`, "checks"];
}

function score(state, event, about) {
  if (!about.standings) {
    state.rating = { ...about, why: event.content };
    return ["rating", "answer", "rail"];
  }
  state.sides = about;
  const changed = about.standings.flatMap((side) => side.turns || []).map((each) => {
    const turn = state.byId.get(each.turn);
    if (turn) turn.score = { total: each.total, deductions: each.deductions, isContested: each.contested };
    return turn && `turn:${turn.key}`;
  });
  return ["sides", "answer", "rail", ...changed.filter(Boolean)];
}

function openAnswer(state, about) {
  state.answer ??= { state: "thinking", html: null, text: "", patches: [], resets: 0, model: about.model, seat: about.seat, quotes: [], turnStatus: "ok" };
  return state.answer;
}

function streamAnswer(state, event, about) {
  const answer = openAnswer(state, about);
  if (!event.content) restart(answer);
  else stream(answer, event, about);
  return ["answer", "seats", "rail"];
}

function completeAnswer(state, event, about) {
  const answer = openAnswer(state, about);
  Object.assign(answer, {
    state: "done", text: event.content, html: about.html ?? null, patches: [], model: about.model, seat: about.seat, quotes: about.quotes || [],
    turnStatus: about.status, elapsed: about.elapsed_ms, usage: about.usage,
  });
  state.open.delete(keyOf(event, about));
  return ["answer", "seats", "rail", "usage"];
}

function finishAnswer(state, event, about) {
  const answer = openAnswer(state, about);
  const isSame = answer.text === event.content && answer.html !== null;
  Object.assign(answer, { state: "done", text: event.content, html: isSame ? answer.html : (about.html ?? answer.html), patches: [] });
  if (about.status) answer.turnStatus = about.status;
  if (about.forecast) state.forecast.result = about.forecast;
  return ["answer", "rail", ...(about.forecast ? ["forecast"] : [])];
}

function degrade(state, event, about) {
  state.degradations.push({ what: about.what, seat: about.seat, round: event.round, why: event.content });
  const changed = ["degraded"];
  if (!about.restart || !about.seat) return changed;
  for (const turn of state.open.values()) {
    if (turn.seat !== about.seat) continue;
    restart(turn);
    if (about.what === "failed") turn.state = "failed";
    changed.push(`turn:${turn.key}`);
  }
  if (state.answer && state.answer.state !== "done" && state.answer.seat === about.seat) {
    restart(state.answer);
    changed.push("answer");
  }
  const seat = seatOf(state, about.seat);
  if (seat && !seat.out) seat.state = about.what === "failed" ? "failed" : "thinking";
  return [...changed, "seats"];
}

function markIdle(state) {
  for (const seat of state.seats) if (["thinking", "writing", "waiting"].includes(seat.state)) seat.state = "idle";
}
