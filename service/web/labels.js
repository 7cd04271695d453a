// The words and numbers people read for the codes in events and records.

export const STOP_WORDS = {
  skeptic_ready: "the Skeptic found the answer ready",
  score_reached: "the target score was reached",
  no_critical_issues: "no critical objection is left",
  max_rounds: "all rounds were used",
  judge_stop: "the judge stopped the debate",
  one_left: "one position was left",
  converged: "the positions converged",
  drafts_agree: "the first answers agreed",
  moderator_stop: "the moderator ended the rounds",
  user: "you asked for the answer",
  failed: "every model failed",
  timeout: "the time limit was reached",
  budget: "the budget did not pay for more rounds",
};

const DEGRADED_WORDS = {
  retried: "failed once and was tried again",
  fell_back: "fell back to the next model",
  failed: "gave up",
  history_shortened: "earlier turns were left out",
  echo_removed: "a repeated prompt was removed",
  prompt_too_long: "the prompt may not fit",
  unreadable: "the verdict could not be parsed",
  not_rated: "the answer was not rated",
  templates_left_out: "templates were left out",
  no_templates: "no reasoning templates",
  tools_spent: "the tools were used up",
  passages_left_out: "passages of the documents were left out",
  no_passages: "no passages from the documents",
  generic_feedback: "general advice instead of feedback",
  kept_previous: "kept its previous answer",
  sat_out: "skipped this round",
  initial_answers_stand: "no further round",
  not_merged: "the answers could not be merged",
  out_of_time: "no time was left",
  out_of_budget: "not asked, because of the budget",
  no_numbers: "the probabilities could not be parsed",
  no_precedents: "too few precedents",
  no_references: "cited no earlier point",
  argued_again: "argued again, because the first argument was too weak",
  argued_anew: "argued once more",
  overlong: "over the length limit",
  judge_silent: "the judge could not be asked, so the debate ends",
  no_verdict: "no verdict",
  not_asked: "could not be asked whether it concedes",
  void_concession: "a concession without effect",
  concession_withdrawn: "took a concession back",
  general_positions: "general positions instead of proposed ones",
  not_checked: "not checked",
  not_scored: "not scored",
  not_anonymised: "the judge may see names",
  folder_incomplete: "the folder could not be written",
};

export const POINT_WORDS = { open: "open", partial: "partly resolved", resolved: "resolved", dropped: "dropped" };
export const STATUS_WORDS = { running: "live", paused: "paused", interrupted: "interrupted", failed: "failed", done: "done" };
export const BREACH_WORDS = {
  off_topic: "off topic",
  new_argument_in_closing: "new argument in the closing statement",
  personal_attack: "personal attack",
  overlong: "over the length limit",
};

const PHASE_WORDS = {
  request: "request", opening: "opening statement", argument: "argument", rebuttal: "rebuttal",
  correction: "correction", summary: "summary of the round", closing: "closing statement", end: "end of the debate",
  positions: "positions", ruling: "ruling", verdict: "verdict", conviction_check: "asked whether it concedes",
  judge_continue: "asked whether to continue", remark: "remark",
};
const ACTIVITIES = {
  conviction_check: "considering the other answers", judge_continue: "deciding whether to continue",
  fact_check: "checking claims", score: "scoring",
};

export const phaseTitle = (phase) => PHASE_WORDS[phase] || "";
export const activityOf = (phase) => ACTIVITIES[phase] || "thinking";

export function degradedWords(entry, seatName) {
  const where = entry.round ? `, round ${entry.round}` : "";
  return { who: entry.seat ? `${seatName(entry.seat)}${where}` : `Debate${where}`, what: DEGRADED_WORDS[entry.what] || plain(entry.what) };
}

/** Turn a code such as `max_rounds` into words. */
export const plain = (code) => String(code || "").replaceAll("_", " ");

export function sentenceCase(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : "";
}

export function shortModel(spec) {
  if (!spec) return "";
  const name = spec.includes(":") ? spec.slice(spec.indexOf(":") + 1) : spec;
  return name.slice(name.lastIndexOf("/") + 1);
}

export const count = (number, noun, plural = `${noun}s`) => `${whole(number)} ${number === 1 ? noun : plural}`;
export const whole = (number) => Number(number).toLocaleString("en-GB");
export const percent = (share) => `${Math.round(share * 100)} %`;
export const oneDigit = (number) => (number === null || number === undefined ? "–" : String(Math.round(number * 10) / 10));

export function dollars(amount) {
  if (amount === null || amount === undefined) return "cost unknown";
  return `$${amount.toFixed(amount >= 1 ? 2 : 3)}`;
}

export function duration(ms) {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${String(seconds % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

export function timeAgo(stamp, now = Date.now()) {
  const then = Date.parse(stamp);
  const minutes = Math.floor((now - then) / 60_000);
  if (Number.isNaN(minutes)) return "";
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  if (minutes < 48 * 60) return "yesterday";
  const options = { day: "numeric", month: "short" };
  if (new Date(then).getFullYear() !== new Date(now).getFullYear()) options.year = "numeric";
  return new Date(then).toLocaleDateString("en-GB", options);
}

export function dueWords(day, now = Date.now()) {
  const days = Math.ceil((Date.parse(day) - now) / 86_400_000);
  if (Number.isNaN(days)) return "";
  if (days < 0) return days === -1 ? "due yesterday" : `due ${-days} days ago`;
  if (days === 0) return "due today";
  return days === 1 ? "due tomorrow" : `due in ${days} days`;
}

/** Return a summary's state in a few words, such as `done · 7.8`. */
export function summaryState(summary) {
  if (summary.status === "running") return summary.round ? `live · round ${summary.round}` : "live";
  if (summary.status === "paused") return summary.waiting_for_you ? "paused · waiting for you" : "paused";
  if (summary.status !== "done") return STATUS_WORDS[summary.status];
  if (summary.protocol === "forecast" && summary.resolution) return `resolved · ${summary.resolution}`;
  if (summary.protocol === "forecast" && summary.due) return dueWords(summary.due);
  const score = summary.user_rating ?? summary.quality_score;
  return score === null || score === undefined ? "done" : `done · ${oneDigit(score)}`;
}
