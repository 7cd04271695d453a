// Forks: the menu of a turn, the dialogs, and the family of a debate.

import { menu } from "./actions.js";
import { forkDebate, getFamily, getReply } from "./api.js";
import { announce, el, show } from "./dom.js";

/** Ask for a text in a dialog; resolve to it, or to null if the person cancels. */
function askForText({ title, hint, label, value = "", rows = 4, submit, isRequired = false, maxlength = 20000 }) {
  return new Promise((resolve) => {
    const text = el("textarea.field", { rows, "aria-label": label, "aria-describedby": "text-hint", required: isRequired, maxlength, spellcheck: "true" });
    text.value = value;
    const dialog = el("dialog.dialog.dialog-wide", { "aria-labelledby": "text-title" },
      el("form", { method: "dialog" },
        el("h2", { id: "text-title" }, title), el("p.muted", { id: "text-hint" }, hint), text,
        el("div.dialog-buttons",
          el("button.button", { value: "no", formnovalidate: true }, "Cancel"),
          el("button.button.button-primary", { value: "yes" }, submit))));
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes" ? text.value : null);
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
    text.focus();
  });
}

async function startFork(id, wanted) {
  const fork = await forkDebate(id, wanted);
  announce("The fork has started");
  location.hash = `#/debates/${fork.id}`;
}

async function forkAfter(id, turn) {
  const say = await askForText({
    title: "Fork from here", submit: "Start the fork", label: "Your comment (optional)",
    hint: "A new debate keeps everything up to this turn and continues from there. This debate stays as it is. You can add a comment for the next speakers.",
  });
  if (say !== null) await startFork(id, { after: turn.id, say: say.trim() });
}

async function forkEdited(id, turn) {
  const before = (await getReply(id, turn.id)).text;
  const text = await askForText({
    title: "Edit and fork", submit: "Start the fork", label: "The new text of the turn", value: before, rows: 16, isRequired: true, maxlength: 200000,
    hint: "A new debate takes your text instead, marked as written by a person, and runs everything after it again. If the turn decides something, keep the block at its end and change the values in it.",
  });
  if (text === null) return;
  if (text.trim() === before.trim()) announce("The text was not changed, so nothing was forked");
  else await startFork(id, { edit: { turn: turn.id, text } });
}

/** Return the menu with which a turn is forked; the style sheet hides it while the debate runs. */
export function forkMenu(id, turn, report, name) {
  const items = [["Fork from here…", () => forkAfter(id, turn).catch(report)]];
  if (turn.state !== "human" && turn.state !== "failed") items.push(["Edit and fork…", () => forkEdited(id, turn).catch(report)]);
  return menu("Fork ▾", items, { class: "link fork-button", "aria-label": `Fork at the turn of ${name}` });
}

/** Open one more round of a finished debate with a further question. */
export async function askFurther(id) {
  const say = await askForText({
    title: "Ask a further question", submit: "Ask", label: "Your question", isRequired: true,
    hint: "A new debate continues with one more round on your question. This debate stays as it is.",
  });
  if (say?.trim()) await startFork(id, { another_round: true, say: say.trim() });
}

/** Return the panel that lists the debates forked from the same one; `load()` fills it. */
export function createFamily(id) {
  const node = el("div.panel-place", { hidden: true });
  async function load() {
    let found;
    try {
      found = await getFamily(id);
    } catch {
      return; // the debate itself says what is wrong
    }
    node.hidden = found.debates.length < 2;
    show(node, el("section.panel", el("h2.panel-title", "Family"),
      el("ul.plain-list.small", found.debates.map((each, at) => relative(id, each, at > found.debates.findIndex((other) => other.id === id)))),
      found.left_out > 0 && el("p.small.muted", `${found.left_out} more`)));
  }
  return { node, load };
}

function relative(id, each, isLater) {
  const short = each.id.slice(0, 8);
  const place = each.edited ? `turn ${each.edited} edited` : each.forked_at ? `forked at ${each.forked_at}` : "the first one";
  if (each.id === id) return el("li", el("b", "This debate"), el("span.muted", ` ${short}, ${place}`));
  if (each.status === "deleted") return el("li.muted", `${short}, deleted`);
  return el("li", el("a", { href: `#/debates/${each.id}` }, short), el("span.muted", ` ${place}, ${each.status} `),
    el("a", { href: `#/compare/${(isLater ? [id, each.id] : [each.id, id]).join("/")}`, "aria-label": `Compare with debate ${short}` }, "Compare"));
}
