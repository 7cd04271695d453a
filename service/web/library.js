// The library: all debates with search, filters and paging.

import { createRating, deleteWithConfirmation, exportItems, menu } from "./actions.js";
import { getProtocols, getScoreboard, listDebates, resumeDebate } from "./api.js";
import { button, debounce, el, hiddenText, show } from "./dom.js";
import { count, dueWords, plain, STOP_WORDS, summaryState, timeAgo } from "./labels.js";

const STATUSES = ["running", "paused", "interrupted", "failed", "done"];

export function debateRow(summary, more) {
  const about = [summary.protocol, rowNote(summary)].filter(Boolean).join(" · ");
  return el("li.debate-row",
    el("span", { class: `row-state state-${summary.waiting_for_you ? "waiting" : summary.status}` }, el("i.dot", { "aria-hidden": "true" }), summaryState(summary)),
    el("span.row-main", el("a.row-question", { href: `#/debates/${summary.id}` }, summary.title || summary.question), more && excerpt(summary)),
    el("span.row-about", about), el("time.row-time", { datetime: summary.created_at }, timeAgo(summary.created_at)), more);
}

function excerpt(summary) {
  const text = summary.error && summary.status === "failed" ? summary.error : (summary.answer_excerpt || "").replace(/[#*`>|]/g, "").trim();
  return text && el("span.row-excerpt", text);
}

function rowNote(summary) {
  if (summary.user_rating) return `you rated it ${summary.user_rating}`;
  if (summary.winner) return `${summary.seats.find((seat) => seat.id === summary.winner)?.name || summary.winner} won`;
  if (summary.status === "done" && summary.stop_reason) return STOP_WORDS[summary.stop_reason] || plain(summary.stop_reason);
  return count(summary.seats.length, "seat");
}

export async function showLibrary(view, tools) {
  const library = new Library(view, tools);
  library.draw();
  await library.load();
  return library;
}

class Library {
  constructor(view, tools) {
    Object.assign(this, { view, tools, next: null, loads: 0 });
    this.report = (error) => tools.report(error.message);
  }

  draw() {
    const reload = () => this.load();
    this.search = el("input.field", { type: "search", id: "search", placeholder: "Search questions and answers", "aria-label": "Search debates", oninput: debounce(reload, 250) });
    this.status = el("select.field", { "aria-label": "Status", onchange: reload }, el("option", { value: "" }, "Any status"), STATUSES.map((each) => el("option", { value: each }, each === "running" ? "live" : each)));
    this.protocol = el("select.field", { "aria-label": "Protocol", onchange: reload }, el("option", { value: "" }, "Any protocol"));
    this.list = el("ul.debates.debates-long");
    this.foot = el("div.list-foot");
    this.due = el("div");
    this.found = el("p.visually-hidden", { role: "status" });
    const heading = el("h1", { tabindex: "-1" }, "Library");
    show(this.view, el("div.page", heading, this.due, el("div.filters", { role: "search" }, this.search, this.status, this.protocol), this.found, this.list, this.foot));
    this.tools.focusTitle(heading, "Library");
    if (location.hash.endsWith("?search")) this.search.focus();
    getProtocols().then((found) => this.protocol.append(...found.map((each) => el("option", { value: each.name }, each.title)))).catch(() => {});
    this.drawDue();
  }

  async drawDue() {
    const { due } = await getScoreboard().catch(() => ({ due: [] }));
    if (!due?.length) return;
    show(this.due, el("div.notice", el("b", `${count(due.length, "forecast")} ${due.length === 1 ? "is" : "are"} due. `), el("a", { href: "#/scoreboard" }, "Record what came true"),
      el("ul.plain-list", due.slice(0, 3).map((each) => el("li", el("a", { href: `#/debates/${each.id}` }, each.question), el("small.muted", ` ${dueWords(each.due)}`))))));
  }

  async load(cursor) {
    const number = ++this.loads;
    if (!cursor) show(this.foot, el("p.muted", "Loading…"));
    try {
      const found = await listDebates({ search: this.search.value.trim(), status: this.status.value, protocol: this.protocol.value, limit: 30, cursor });
      if (number === this.loads) this.drawFound(found, cursor);
    } catch (error) {
      show(this.foot, el("p.problem", { role: "alert" }, error.message), button("Try again", () => this.load(cursor)));
    }
  }

  drawFound({ debates, next }, cursor) {
    const rows = debates.map((summary) => this.row(summary));
    if (cursor) this.list.append(...rows);
    else show(this.list, rows);
    const isFiltered = this.search.value.trim() || this.status.value || this.protocol.value;
    const empty = isFiltered ? el("p.empty", "No debate matches.") : el("p.empty", "There are no debates yet. ", el("a", { href: "#/" }, "Ask the first question"), ".");
    show(this.foot, !this.list.children.length && empty, next && button("Show more", () => this.load(next)));
    this.found.textContent = `${count(this.list.children.length, "debate")} shown`;
  }

  row(summary) {
    const open = () => { location.hash = `#/debates/${summary.id}`; };
    const resume = () => resumeDebate(summary.id).then(open).catch(this.report);
    const remove = async () => {
      if (!await deleteWithConfirmation(summary.id, summary.question, this.report)) return;
      row.remove();
      this.search.focus();
    };
    const items = [["Open", open]];
    if (["paused", "interrupted", "failed"].includes(summary.status)) items.push(["Resume", resume]);
    if (summary.status === "done") items.push(["Rate", () => this.rate(row, summary)]);
    for (const [name, action] of exportItems(summary.id, this.report)) items.push([`Export: ${name}`, action]);
    items.push(["Delete", remove]);
    const row = debateRow(summary, menu([el("span", { "aria-hidden": "true" }, "⋯"), hiddenText(`Actions for ${summary.question}`)], items, { class: "button button-quiet row-menu" }));
    return row;
  }

  /** Rate the answer in its row; a choice, Cancel and Escape lead back to the row's menu. */
  rate(row, summary) {
    const close = (next) => {
      row.querySelector(".rating")?.remove();
      if (next !== row) row.replaceWith(next);
      next.querySelector(".row-menu").focus();
    };
    const { node, show: draw } = createRating(summary.id, this.report, {
      label: `Your rating of ${summary.title || summary.question}`,
      onRated: (number) => close(this.row({ ...summary, user_rating: number })),
    });
    node.append(button("Cancel", () => close(row), { class: "link" }));
    node.addEventListener("keydown", (event) => { if (event.key === "Escape") close(row); });
    draw(summary.user_rating);
    row.querySelector(".rating")?.remove();
    row.append(node);
    (node.querySelector("[aria-pressed=true]") || node.querySelector("button")).focus();
  }

  onKey(key) {
    if (key !== "j" && key !== "k") return false;
    const links = [...this.list.querySelectorAll(".row-question")];
    const at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at + (key === "j" ? 1 : -1)))]?.focus();
    return true;
  }
}
