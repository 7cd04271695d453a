// The ask view: the question, the protocol, who takes part, settings, documents, and the estimate.

import { getEstimate, getModels, getPresets, getProtocols, listDebates, startDebate } from "./api.js";
import { announce, button, debounce, el, show } from "./dom.js";
import { count, dollars, whole } from "./labels.js";
import { debateRow } from "./library.js";
import { createSeatsForm } from "./seats-form.js";
import { createSettingsForm } from "./settings-form.js";

const DRAFT_KEY = "contend-question";

export async function showAsk(view, tools) {
  const heading = el("h1", { tabindex: "-1" }, "What should be debated?");
  const form = el("div.ask-form", el("p.muted", { role: "status" }, "Loading…"));
  const recent = el("section.recent", { "aria-label": "Recent debates", hidden: true });
  show(view, el("div.ask", heading, form, recent));
  tools.focusTitle(heading, "Ask");
  drawRecent(recent);
  try {
    const [protocols, models, presets] = await Promise.all([getProtocols(), getModels(), getPresets()]);
    new AskForm(form, protocols, models, presets).draw();
  } catch (error) {
    show(form, el("p.problem", { role: "alert" }, error.message), button("Try again", () => showAsk(view, tools)));
  }
  return null;
}

async function drawRecent(place) {
  try {
    const { debates } = await listDebates({ limit: 6 });
    if (!debates.length) return;
    place.hidden = false;
    show(place, el("h2.panel-title", "Recent"), el("ul.debates", debates.map((summary) => debateRow(summary))), el("a", { href: "#/library", class: "small" }, "All debates"));
  } catch {
    // The form says it if the server is away.
  }
}

class AskForm {
  constructor(place, protocols, models, presets) {
    Object.assign(this, { place, protocols, models, presets, files: [], protocol: protocols[0] });
    this.estimateSoon = debounce(() => this.estimate(), 400);
    this.estimateNumber = 0;
  }

  draw() {
    this.question = el("textarea.field.question-field", { rows: 3, maxlength: 20000, required: true, "aria-label": "Question", placeholder: "Should a four-person team split its monolith into services?", value: sessionStorage.getItem(DRAFT_KEY) || "", oninput: () => this.onQuestion(), onkeydown: (event) => this.onQuestionKey(event) });
    this.options = el("div.options-place");
    this.fileList = el("ul.files");
    this.fileInput = el("input", { type: "file", multiple: true, class: "visually-hidden", id: "documents", tabindex: "-1", "aria-label": "Documents and images", onchange: () => this.addFiles(this.fileInput.files) });
    this.estimateLine = el("p.estimate", { role: "status" });
    this.problems = el("div.problems", { role: "alert" });
    this.start = el("button.button.button-primary.start", "Start debate");
    const form = el("form", { novalidate: true, onsubmit: (event) => this.submit(event), ondragover: (event) => this.onDrag(event), ondragleave: () => form.classList.remove("is-dropping"), ondrop: (event) => this.onDrop(event) },
      this.question, this.protocolCards(), this.presetChooser(), this.options,
      el("div.row", button("Add documents", () => this.fileInput.click(), { class: "button" }), el("span.muted.small", "or drop files here: text, Markdown, PDF, images"), this.fileInput), this.fileList,
      this.settingsPlace = el("div"), this.problems,
      el("div.start-row", this.start, this.estimateLine));
    this.form = form;
    show(this.place, form);
    this.chooseProtocol(this.protocol);
    if (matchMedia("(min-width: 700px)").matches) this.question.focus();
  }

  protocolCards() {
    return el("fieldset.protocols", el("legend.visually-hidden", "Protocol"), this.protocols.map((each) =>
      el("label.protocol",
        el("input", { type: "radio", name: "protocol", value: each.name, checked: each === this.protocol, class: "visually-hidden", onchange: () => this.chooseProtocol(each) }),
        el("span.protocol-title", each.title), el("span.protocol-about", each.description), el("span.protocol-when", `When ${lowerFirst(each.use_when)}`))));
  }

  presetChooser() {
    this.presetAbout = el("span.setting-about", { id: "preset-about", role: "status" });
    this.preset = el("select.field", { id: "preset", "aria-describedby": "preset-about", onchange: () => this.choosePreset() },
      el("option", { value: "" }, "None"), this.presets.map((each) => el("option", { value: each.name }, each.name)));
    return el("div.row.preset", el("label", { for: "preset" }, "Preset"), this.preset, this.presetAbout);
  }

  choosePreset() {
    const chosen = this.presets.find((each) => each.name === this.preset.value);
    show(this.presetAbout, chosen ? chosen.description : "");
    this.estimateSoon();
  }

  chooseProtocol(protocol) {
    this.protocol = protocol;
    this.seats = createSeatsForm(protocol, this.models, () => this.estimateSoon());
    this.settings = createSettingsForm(protocol.schema, this.seats.handled, () => this.estimateSoon());
    const isForecast = protocol.name === "forecast";
    this.outcomes = isForecast ? el("textarea.field", { rows: 3, id: "outcomes", placeholder: "yes: It opens before May\nno: It does not", oninput: () => this.estimateSoon() }) : null;
    this.due = isForecast ? el("input.field", { type: "date", id: "due" }) : null;
    show(this.options, isForecast && el("div.forecast-fields",
      el("div", el("label", { for: "outcomes" }, "Possible outcomes, one per line"), this.outcomes, el("p.setting-about", "Two or more. Exactly one of them must come true.")),
      el("div", el("label", { for: "due" }, "Known on"), this.due)), this.seats.node);
    show(this.settingsPlace, this.settings.node);
    show(this.problems);
    this.estimateSoon();
  }

  onQuestion() {
    sessionStorage.setItem(DRAFT_KEY, this.question.value);
    this.estimateSoon();
  }

  onQuestionKey(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
  }

  request() {
    const { model, settings } = this.seats.read();
    const all = { ...settings, ...this.settings.read() };
    const request = { question: this.question.value.trim(), protocol: this.protocol.name };
    if (model) request.model = model;
    if (this.preset.value) request.preset = this.preset.value;
    if (Object.keys(all).length) request.settings = all;
    const outcomes = readOutcomes(this.outcomes?.value || "");
    if (outcomes.length) request.outcomes = outcomes;
    if (this.due?.value) request.due = this.due.value;
    return request;
  }

  async estimate() {
    const number = ++this.estimateNumber;
    const { question, protocol, preset, model, settings } = this.request();
    if (!question) return show(this.estimateLine, this.models.notice);
    try {
      const found = await getEstimate({ question, protocol, preset, model, settings });
      if (number !== this.estimateNumber) return undefined;
      return show(this.estimateLine, `${estimateWords(found)}. `, el("span.muted", `${found.notice || (model || preset ? "" : this.models.notice) || ""}`));
    } catch (error) {
      if (number !== this.estimateNumber) return undefined;
      const rest = this.settings.showProblems(problemsOf(error));
      return show(this.estimateLine, el("span.muted", rest.length ? `No estimate. ${rest.join(" ")}` : "No estimate: a setting needs your attention."));
    }
  }

  async submit(event) {
    event.preventDefault();
    if (!this.question.value.trim()) return this.question.focus();
    if (this.outcomes && readOutcomes(this.outcomes.value).length < 2) {
      show(this.problems, el("p.problem", "A forecast needs two or more outcomes, one per line."));
      return this.outcomes.focus();
    }
    this.start.disabled = true;
    show(this.problems);
    try {
      const summary = await startDebate(this.request(), this.files);
      sessionStorage.removeItem(DRAFT_KEY);
      announce("Debate started");
      location.hash = `#/debates/${summary.id}`;
    } catch (error) {
      this.showProblems(error);
    }
    this.start.disabled = false;
    return undefined;
  }

  showProblems(error) {
    const rest = this.settings.showProblems(problemsOf(error));
    show(this.problems, rest.map((problem) => el("p.problem", problem)));
    this.form.querySelector("[aria-invalid]")?.focus();
  }

  // --- documents ---

  onDrag(event) {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    this.form.classList.add("is-dropping");
  }

  onDrop(event) {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    this.form.classList.remove("is-dropping");
    this.addFiles(event.dataTransfer.files);
  }

  addFiles(files) {
    this.files.push(...files);
    this.fileInput.value = "";
    this.drawFiles();
    announce(`${count(this.files.length, "file")} added`);
  }

  drawFiles() {
    show(this.fileList, this.files.map((file, at) => el("li.file", file.name, el("small.muted", ` ${fileSize(file.size)}`),
      button("×", () => { this.files.splice(at, 1); this.drawFiles(); }, { class: "link", "aria-label": `Remove ${file.name}` }))));
  }
}

const problemsOf = (error) => (error.problems?.length ? error.problems : [error.message]);
const lowerFirst = (text) => text.charAt(0).toLowerCase() + text.slice(1);
const fileSize = (bytes) => (bytes < 1_000_000 ? `${Math.max(1, Math.round(bytes / 1000))} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`);

/** Read one outcome per line; a line without an id gets one from its words. */
export function readOutcomes(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    if (/^[\w-]{1,40}:\s*\S/.test(line)) return line;
    const id = line.toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_|_$/g, "").slice(0, 30);
    return `${id || "outcome"}: ${line}`;
  });
}

const range = ([low, high], words) => (low === high ? words(low) : `${words(low)} to ${words(high)}`);

function costWords(cost, read) {
  if (!cost) return "cost unknown";
  return cost[1] ? range(cost, dollars) + (read ? ` (prices from ${read})` : "") : "free";
}

export function estimateWords({ calls, tokens, cost_usd: cost, prices_read: read, likely }) {
  const thousands = (number) => (number < 1000 ? whole(number) : `${Math.round(number / 1000)}k`);
  const words = [`${range(calls, whole)} calls`, `about ${range(tokens, thousands)} tokens`, costWords(cost, read)].join(", ");
  if (!likely) return words;
  return `${words}; likely ${[count(likely.calls, "call"), `${thousands(likely.tokens)} tokens`, likely.cost_usd && dollars(likely.cost_usd)].filter(Boolean).join(", ")}`;
}
