// The router: shows the view that the address names, and what all views share.

import { onTokenNeeded, takeTokenFromAddress } from "./api.js";
import { button, el, show } from "./dom.js";

const view = document.getElementById("view");
const connection = document.getElementById("connection");
let current = null;
let isFirstView = true;
let routeNumber = 0;

const tools = { focusTitle, showError, showConnection, report };

async function route() {
  takeTokenFromAddress();
  const number = ++routeNumber;
  current?.close?.();
  current = null;
  const [name, ...ids] = location.hash.replace(/^#\/?/, "").split("?")[0].split("/");
  view.className = `view-${name || "ask"}`;
  markNavigation(name || "ask");
  window.scrollTo(0, 0);
  const made = await openView(name, ids.filter(Boolean).map(decodeURIComponent));
  if (number === routeNumber) current = made;
  else made?.close?.();
}

/** Load the view's module when it is first shown. */
async function openView(name, ids) {
  if (name === "debates" && ids.length) return (await import("./debate.js")).showDebate(view, ids[0], tools);
  if (name === "compare" && ids.length > 1) return (await import("./compare.js")).showCompare(view, ids.slice(0, 2), tools);
  if (name === "library") return (await import("./library.js")).showLibrary(view, tools);
  if (name === "scoreboard") return (await import("./scoreboard.js")).showScoreboard(view, tools);
  return (await import("./ask.js")).showAsk(view, tools);
}

function markNavigation(name) {
  for (const link of document.querySelectorAll(".site-nav a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Name the page, and move the focus to its heading unless the page has just been opened. */
function focusTitle(heading, title) {
  document.title = `${title} · Contend`;
  if (!isFirstView) heading.focus({ preventScroll: true });
  isFirstView = false;
}

function showError(place, error, text) {
  const heading = el("h1", { tabindex: "-1" }, "This did not work");
  show(place, el("div.empty", heading, el("p", { role: "alert" }, text || error.message),
    el("div.row", button("Try again", route), el("a.button", { href: "#/library" }, "Library"))));
  focusTitle(heading, "Error");
}

/** Show a line about the connection; null hides it. */
function showConnection(text, retry) {
  connection.hidden = !text;
  show(connection, text || "", retry && button("Try now", retry, { class: "link" }));
}

/** Show an error that ends nothing, for a while. */
function report(text) {
  document.querySelector(".toast")?.remove();
  const toast = el("div.toast", { role: "alert" }, text, button("Close", () => toast.remove(), { class: "link" }));
  document.body.append(toast);
  setTimeout(() => toast.remove(), 10_000);
}

// --- the token ---

let tokenAsked = null;

function askForToken() {
  tokenAsked ??= new Promise((resolve) => {
    const input = el("input.field", { type: "password", name: "token", autocomplete: "off", required: true, "aria-label": "Service token" });
    const dialog = el("dialog.dialog", { "aria-labelledby": "token-title" },
      el("form", { method: "dialog" }, el("h2", { id: "token-title" }, "This service needs a token"), el("p", "Enter the token that was printed or set when the service was started."), input,
        el("div.dialog-buttons", el("button.button.button-primary", { value: "ok" }, "Continue"))));
    dialog.addEventListener("close", () => {
      resolve(input.value.trim() || null);
      dialog.remove();
      tokenAsked = null;
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return tokenAsked;
}

// --- the theme ---

const THEMES = ["auto", "light", "dark"];
const THEME_SIGNS = { auto: "◐", light: "☀", dark: "☾" };
const THEME_WORDS = { auto: "as the system", light: "light", dark: "dark" };

function drawTheme() {
  const theme = window.contendTheme.current();
  const themeButton = document.getElementById("theme-button");
  show(themeButton, el("span", { "aria-hidden": "true" }, THEME_SIGNS[theme]));
  themeButton.setAttribute("aria-label", `Theme: ${THEME_WORDS[theme]}`);
  themeButton.title = `Theme: ${THEME_WORDS[theme]}`;
}

function switchTheme() {
  const at = THEMES.indexOf(window.contendTheme.current());
  window.contendTheme.set(THEMES[(at + 1) % THEMES.length]);
  drawTheme();
}

// --- keys ---

const KEYS = [["/", "Search the library"], ["j", "Next turn"], ["k", "Previous turn"], ["p", "Pause or resume the debate"], ["?", "Show this list"], ["Esc", "Close"]];

function showHelp() {
  if (document.querySelector("dialog[open]")) return;
  const dialog = el("dialog.dialog", { "aria-labelledby": "help-title" },
    el("form", { method: "dialog" }, el("h2", { id: "help-title" }, "Keyboard shortcuts"),
      el("dl.keys", KEYS.map(([key, what]) => el("div", el("dt", el("kbd", key)), el("dd", what)))),
      el("div.dialog-buttons", el("button.button", "Close"))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function isTyping(target) {
  return target.closest("input, textarea, select, [contenteditable], dialog");
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.key === "?") showHelp();
  else if (event.key === "/") goToSearch();
  else if (!current?.onKey?.(event.key)) return;
  event.preventDefault();
}

function goToSearch() {
  const search = document.getElementById("search");
  if (search) search.focus();
  else location.hash = "#/library?search";
}

onTokenNeeded(askForToken);
document.getElementById("theme-button").addEventListener("click", switchTheme);
document.getElementById("help-button").addEventListener("click", showHelp);
document.querySelector(".skip-link").addEventListener("click", (event) => {
  event.preventDefault();
  view.focus();
});
document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", route);
window.addEventListener("offline", () => showConnection("You are offline."));
window.addEventListener("online", () => showConnection(null));
drawTheme();
route();
