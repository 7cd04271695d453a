// The settings of a protocol, generated from its JSON schema. Only changed values are read.

import { button, el, show } from "./dom.js";
import { plain, sentenceCase } from "./labels.js";

// Set only by the operator of the service.
const NOT_OFFERED = new Set(["output_dir"]);
const COMMON = ["max_rounds", "min_rounds", "round_count", "max_debate_rounds", "judge_mode", "debate_format", "pause", "fact_check", "templates"];

/** Return the form with `node`, `read()` and `showProblems(problems)`. */
export function createSettingsForm(schema, leftOut, onChange) {
  const names = Object.keys(schema.properties).filter((name) => !leftOut.has(name) && !NOT_OFFERED.has(name));
  const fields = sortNames(names).map((name) => createField(name, resolve(schema.properties[name], schema), schema.properties[name].default, () => { drawCount(); onChange(); }));
  const counter = el("span.muted");
  const nothing = el("p.muted", { hidden: true }, "No setting has this name.");
  const search = el("input.field", { type: "search", placeholder: "Find a setting", "aria-label": "Find a setting", oninput: filter });
  const node = el("details.settings", el("summary", "Settings ", counter), search, el("div.settings-grid", fields.map((field) => field.node)), nothing);

  function filter() {
    const wanted = search.value.trim().toLowerCase();
    for (const field of fields) field.node.hidden = !field.searched.includes(wanted);
    nothing.hidden = fields.some((field) => !field.node.hidden);
  }

  function drawCount() {
    const changed = fields.filter((field) => field.isChanged()).length;
    show(counter, changed ? `· ${changed} changed` : "");
  }

  return {
    node,
    read: () => Object.fromEntries(fields.filter((field) => field.isChanged()).map((field) => [field.name, field.value()])),
    /** Show each problem at its field; return those that belong to none. */
    showProblems(problems) {
      for (const field of fields) field.showProblem("");
      return problems.filter((problem) => {
        const field = fields.find((each) => each.name === /^(?:settings\.)?(\w+)/.exec(problem)?.[1]);
        if (!field) return true;
        field.showProblem(problem);
        node.open = true;
        return false;
      });
    },
  };
}

function sortNames(names) {
  const rank = (name) => (COMMON.includes(name) ? COMMON.indexOf(name) : COMMON.length);
  return [...names].sort((a, b) => rank(a) - rank(b));
}

/** Return the schema of the value itself: without null, and with references filled in. */
function resolve(property, schema) {
  const choices = (property.anyOf || []).filter((each) => each.type !== "null");
  const chosen = choices.length ? { ...property, ...choices[0], anyOf: undefined } : property;
  if (!chosen.$ref) return chosen;
  return { ...schema.$defs[chosen.$ref.split("/").pop()], ...chosen };
}

function createField(name, property, fallback, onChange) {
  const id = `setting-${name}`;
  const problem = el("p.problem", { id: `${id}-problem`, hidden: true, role: "alert" });
  const reset = button("Reset", () => { control.reset(); changed(); }, { class: "link", hidden: true, "aria-label": `Reset ${plain(name)}` });
  const control = createControl(id, property, fallback, changed);
  const description = property.description || "";
  const node = el("div.setting",
    el("div.setting-head", el("label", { for: id }, sentenceCase(plain(name))), reset), control.node,
    el("p.setting-about", { id: `${id}-about` }, description, defaultWords(property, fallback)), problem);
  control.input?.setAttribute("aria-describedby", `${id}-about ${id}-problem`);

  function isChanged() {
    return control.isValid() ? JSON.stringify(control.value()) !== JSON.stringify(control.initial) : true;
  }

  function changed() {
    problem.hidden = true;
    reset.hidden = !isChanged();
    node.classList.toggle("is-changed", isChanged());
    onChange();
  }

  return {
    name, node, isChanged, value: () => control.value(), searched: `${name} ${plain(name)} ${description}`.toLowerCase(),
    showProblem(text) {
      problem.hidden = !text;
      show(problem, text);
      if (text) control.input?.setAttribute("aria-invalid", "true");
      else control.input?.removeAttribute("aria-invalid");
    },
  };
}

function defaultWords(property, fallback) {
  if (fallback === null || fallback === undefined || fallback === "" || typeof fallback === "object" || typeof fallback === "boolean") return "";
  return el("span.muted", ` Default: ${property.enum ? plain(fallback) : fallback}.`);
}

function createControl(id, property, fallback, onChange) {
  const common = { id, class: "field", oninput: onChange };
  if (property.enum) return choiceControl(common, property.enum, fallback);
  if (property.type === "boolean") return switchControl(id, fallback, onChange);
  if (property.type === "integer" || property.type === "number") return numberControl(common, property, fallback);
  if (property.type === "array" && property.items?.enum) return severalControl(id, property.items.enum, fallback, onChange);
  if (property.type === "array" && property.items?.type === "string") return linesControl(common, fallback);
  if (property.type === "string") return textControl(common, property, fallback, id);
  return jsonControl(common, fallback);
}

function wrapControl(input, initial, value, set, isValid = () => true) {
  return { node: input, input, initial, value, isValid, reset: () => set(initial) };
}

function choiceControl(common, choices, fallback) {
  const input = el("select", common, choices.map((choice) => el("option", { value: choice, selected: choice === fallback }, plain(choice))));
  return wrapControl(input, fallback, () => input.value, (value) => { input.value = value; });
}

function switchControl(id, fallback, onChange) {
  const input = el("input", { id, type: "checkbox", class: "switch", role: "switch", checked: Boolean(fallback), onchange: onChange });
  return wrapControl(input, Boolean(fallback), () => input.checked, (value) => { input.checked = value; });
}

function numberControl(common, property, fallback) {
  const known = fallback ?? null;
  const input = el("input", { ...common, type: "number", min: property.minimum, max: property.maximum, step: property.type === "integer" ? 1 : "any", value: known ?? "", placeholder: known === null ? "not set" : "" });
  return wrapControl(input, known, () => (input.value === "" ? null : Number(input.value)), (value) => { input.value = value ?? ""; });
}

function textControl(common, property, fallback, id) {
  const known = fallback ?? "";
  const input = /prompt/.test(id) ? el("textarea", { ...common, rows: 3, value: known }) : el("input", { ...common, type: "text", value: known });
  return wrapControl(input, known, () => input.value, (value) => { input.value = value; });
}

function linesControl(common, fallback) {
  const known = fallback ?? [];
  const input = el("textarea", { ...common, rows: 2, placeholder: "One per line", value: known.join("\n") });
  return wrapControl(input, known, () => input.value.split("\n").map((line) => line.trim()).filter(Boolean), (value) => { input.value = value.join("\n"); });
}

function severalControl(id, choices, fallback, onChange) {
  const known = fallback ?? [];
  const boxes = choices.map((choice) => el("input", { type: "checkbox", value: choice, checked: known.includes(choice), onchange: onChange }));
  const node = el("div", { id, class: "several", role: "group" }, boxes.map((box, at) => el("label", box, plain(choices[at]))));
  const value = () => boxes.filter((box) => box.checked).map((box) => box.value);
  return { node, input: node, initial: known, value, isValid: () => true, reset: () => boxes.forEach((box) => { box.checked = known.includes(box.value); }) };
}

function jsonControl(common, fallback) {
  const known = fallback ?? {};
  const input = el("textarea", { ...common, rows: 2, placeholder: "JSON", spellcheck: "false", value: Object.keys(known).length ? JSON.stringify(known) : "" });
  const parse = () => {
    try { return input.value.trim() ? JSON.parse(input.value) : known; } catch { return undefined; }
  };
  return wrapControl(input, known, () => parse() ?? input.value, (value) => { input.value = Object.keys(value).length ? JSON.stringify(value) : ""; }, () => parse() !== undefined);
}
