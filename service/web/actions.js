// What can be done with a stored debate: export, rate, delete.

import { deleteDebate, downloadExport, rateDebate } from "./api.js";
import { announce, button, confirmDialog, el, hiddenText } from "./dom.js";

const FORMATS = [["html", "Web page to share"], ["md", "Markdown"], ["json", "JSON"]];

let openMenu = null;

function closeMenu(focusButton = false) {
  if (!openMenu) return;
  const { trigger, list } = openMenu;
  openMenu = null;
  list.hidden = true;
  trigger.setAttribute("aria-expanded", "false");
  if (focusButton) trigger.focus();
}

document.addEventListener("click", (event) => {
  if (openMenu && !openMenu.list.parentNode.contains(event.target)) closeMenu();
});
document.addEventListener("keydown", (event) => {
  if (!openMenu) return;
  const items = [...openMenu.list.querySelectorAll("button")];
  const at = items.indexOf(document.activeElement);
  if (event.key === "Escape") closeMenu(true);
  else if (event.key === "ArrowDown") items[(at + 1) % items.length].focus();
  else if (event.key === "ArrowUp") items[(at - 1 + items.length) % items.length].focus();
  else return;
  event.preventDefault();
});

/** Return a button that opens a menu; items are `[text, action]`. */
export function menu(label, items, attributes = {}) {
  const list = el("div.menu", { role: "menu", hidden: true }, items.map(([text, action]) =>
    el("button", { type: "button", role: "menuitem", class: "menu-item", onclick: () => { closeMenu(true); action(); } }, text)));
  const trigger = el("button", {
    type: "button", class: "button", "aria-haspopup": "menu", "aria-expanded": "false", ...attributes,
    onclick() {
      const wasOpen = openMenu?.list === list;
      closeMenu();
      if (wasOpen) return;
      list.hidden = false;
      trigger.setAttribute("aria-expanded", "true");
      openMenu = { trigger, list };
      list.querySelector("button")?.focus();
    },
  }, label);
  return el("div.menu-holder", trigger, list);
}

export function exportItems(id, report) {
  return FORMATS.map(([format, name]) => [name, () => downloadExport(id, format).catch(report)]);
}

/** Delete a debate after a confirmation; resolve to true if it is gone. */
export async function deleteWithConfirmation(id, question, report) {
  if (!await confirmDialog("Delete this debate?", `“${question}” and everything said in it will be deleted. This cannot be undone.`, "Delete")) return false;
  try {
    await deleteDebate(id);
  } catch (error) {
    report(error);
    return false;
  }
  announce("Debate deleted");
  return true;
}

/** Return a row of buttons that rate an answer from 1 to 10, with `show(stored)`; what is chosen here is newer than what is stored. */
export function createRating(id, report, { label = "Your rating", onRated = () => {} } = {}) {
  let chosen = null;
  const group = el("div.rating", { role: "group", "aria-label": label, onkeydown: moveWithArrows }, el("span.rating-label", "Your rating"));
  const choose = async (number) => {
    try {
      await rateDebate(id, number);
      chosen = number;
      draw(chosen);
      announce(`Rated ${number} of 10`);
      onRated(number);
    } catch (error) {
      report(error);
    }
  };
  function moveWithArrows(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const at = buttons.indexOf(document.activeElement);
    if (step && at >= 0) buttons[Math.max(0, Math.min(9, at + step))].focus();
  }
  const buttons = Array.from({ length: 10 }, (_, at) => button(String(at + 1), () => choose(at + 1), { class: "rating-button" }));
  function draw(current) {
    buttons.forEach((each, at) => {
      each.setAttribute("aria-pressed", String(at + 1 === current));
      each.classList.toggle("is-below", current !== null && at + 1 <= current);
    });
  }
  group.append(...buttons, hiddenText("out of 10"));
  return { node: group, show: (stored) => draw(chosen ?? stored ?? null) };
}
