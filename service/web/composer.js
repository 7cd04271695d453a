// The box for a person's words: a remark while the debate runs, the answer when it waits.

import { finishDebate, resumeDebate } from "./api.js";
import { button, el, show } from "./dom.js";

const TITLES = {
  running: "Say something",
  paused: "Continue with a remark",
  asked: "It is your turn",
  failed: "Try again",
};
const HINTS = {
  running: "The debate pauses after the current step and continues with your remark.",
  paused: "The next speakers see what you write. You can leave it empty.",
  asked: "The round is over. The next speakers see what you write. You can leave it empty.",
  failed: "Everything so far is saved. The debate continues where it stopped.",
};

/** Return a form with `update(state)`. */
export function createComposer(id, report) {
  const title = el("h2.panel-title");
  const hint = el("p.small.muted", { id: "composer-hint" });
  const text = el("textarea", { rows: 2, class: "field", "aria-label": "Your remark", "aria-describedby": "composer-hint", placeholder: "The next speakers will read this", maxlength: 20000 });
  const buttons = el("div.composer-buttons");
  const node = el("form.panel.composer", { onsubmit: (event) => { event.preventDefault(); send(); } }, title, hint, text, buttons);
  let mode = null;
  let ask = null;
  let isBusy = false;

  async function attempt(action) {
    if (isBusy) return;
    isBusy = true;
    node.classList.add("is-busy");
    try {
      await action();
      text.value = "";
    } catch (error) {
      report(error);
    }
    isBusy = false;
    node.classList.remove("is-busy");
  }

  function send() {
    const said = text.value.trim();
    if ((mode === "running" || mode === "seat") && !said) return text.focus();
    return attempt(() => resumeDebate(id, said));
  }

  const finish = () => attempt(() => finishDebate(id, text.value.trim()));

  function draw() {
    const isSeat = mode === "seat";
    show(title, isSeat ? `${ask.name}, it is your turn` : TITLES[mode]);
    show(hint, isSeat ? [ask.problem, ask.request].filter(Boolean).join(" ") : HINTS[mode]);
    hint.classList.toggle("plain-text", isSeat);
    text.rows = isSeat ? 8 : 2;
    text.placeholder = isSeat ? "Your turn in the debate" : "The next speakers will read this";
    text.setAttribute("aria-label", isSeat ? "Your turn" : "Your remark");
    const submit = el("button.button.button-primary", mode === "running" || isSeat ? "Send" : mode === "failed" ? "Try again" : "Continue");
    show(buttons, submit, (mode === "paused" || mode === "asked") && button("Write the answer now", finish));
    text.hidden = mode === "failed";
  }

  return {
    node,
    /** Show the box that fits; return whether a person is asked to act. */
    update(state) {
      const next = state.status === "done" || state.isGone ? null : state.status === "paused" ? (state.ask?.seat ? "seat" : state.ask ? "asked" : "paused") : state.status === "running" ? "running" : "failed";
      node.hidden = next === null;
      if (next && (next !== mode || state.ask !== ask)) {
        mode = next;
        ask = state.ask;
        draw();
      }
      node.classList.toggle("is-asked", mode !== "running");
      return next !== null && next !== "running";
    },
  };
}
