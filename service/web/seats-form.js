// Who takes part: one model picker per role, or a list of debaters or sides.

import { button, el, show } from "./dom.js";
import { modelPicker } from "./model-picker.js";
import { shortModel } from "./labels.js";

const LISTS = {
  seats: { title: "Debaters", add: "Add a debater", noun: "Debater", least: 2, most: 8, hasPosition: false },
  positions: { title: "Sides", add: "Add a side", noun: "Advocate", least: 2, most: 8, hasPosition: true },
};

const PERSON = { spec: "human", provider: "a person is asked" };

/** Return the seats of a protocol as a form with `node` and `read()`, which gives `{model, settings}`. */
export function createSeatsForm(protocol, models, onChange) {
  const chosen = {};
  let everyone = "";
  const listName = Object.keys(LISTS).find((name) => protocol.schema.properties[name]);
  const rows = listName ? startingRows(protocol, listName) : null;
  const listed = new Set((rows || []).map((row) => row.id));
  const listedRole = protocol.seats.find((seat) => listed.has(seat.id))?.role;
  const roles = protocol.seats.filter((seat) => !listed.has(seat.id) && protocol.schema.properties[`${seat.id}_model`]);
  const defaultName = models.default ? shortModel(models.default) : "default model";

  const modelsOf = (role) => (protocol.people.includes(role) ? [...models.models, PERSON] : models.models);

  const chips = el("div.chips",
    chip("All seats", models.models, `${defaultName} (default)`, (value) => { everyone = value; }),
    roles.map((seat) => chip(seat.name, modelsOf(seat.role), "same for all", (value) => { chosen[`${seat.id}_model`] = value; })));
  const list = el("div.seat-rows");

  function chip(name, offered, placeholder, set) {
    const picker = modelPicker({ label: `Model: ${name}`, models: offered, placeholder, onChange: (spec) => { set(spec); onChange(); } });
    return el("label.chip", el("span.chip-name", name), picker.node);
  }

  function drawRows() {
    const kind = LISTS[listName];
    show(list, el("h3.panel-title", kind.title),
      rows.map((row, at) => seatRow(kind, row, at)),
      rows.length < kind.most && button(`+ ${kind.add}`, () => { rows.push({ name: `${kind.noun} ${rows.length + 1}`, position: "", model: "" }); changed(); }, { class: "link" }));
  }

  function seatRow(kind, row, at) {
    const field = (name, attributes) => el("input.field", { value: row[name] || "", maxlength: 4000, ...attributes, oninput: (event) => { row[name] = event.target.value; row.isChanged = true; onChange(); } });
    const picker = modelPicker({ label: `Model: ${row.name}`, models: modelsOf(listedRole), placeholder: "same for all", value: row.model || "", onChange: (spec) => { row.model = spec; row.isChanged = true; onChange(); } });
    return el("div", { class: `seat-row ${kind.hasPosition ? "has-position" : ""} seat-${(at + (kind.hasPosition ? 1 : 0)) % 8}` },
      field("name", { "aria-label": `Name of ${kind.noun.toLowerCase()} ${at + 1}`, maxlength: 40 }),
      kind.hasPosition && field("position", { "aria-label": `Position of ${row.name}`, placeholder: "What this side argues (proposed by the moderator if empty)" }),
      picker.node,
      rows.length > kind.least && button("×", () => { rows.splice(at, 1); changed(); }, { class: "link", "aria-label": `Remove ${row.name}` }));
  }

  function changed() {
    for (const row of rows) row.isChanged = true;
    drawRows();
    onChange();
  }

  if (rows) drawRows();

  return {
    node: el("div.seats-form", chips, rows && list),
    handled: new Set([listName, ...roles.map((seat) => `${seat.id}_model`)].filter(Boolean)),
    read() {
      const settings = Object.fromEntries(Object.entries(chosen).filter(([, value]) => value));
      if (rows?.some((row) => row.isChanged)) settings[listName] = rows.map((row) => readRow(LISTS[listName], row, everyone || models.default));
      return { model: everyone || undefined, settings };
    },
  };
}

function startingRows(protocol, listName) {
  const defaults = protocol.schema.properties[listName].default || [];
  const seats = protocol.seats.filter((seat) => defaults.some((each) => each.name === seat.name));
  return defaults.map((each, at) => ({ name: each.name, position: each.position || "", model: "", id: seats[at]?.id, isChanged: false }));
}

function readRow(kind, row, everyone) {
  const made = { name: row.name.trim() };
  if (kind.hasPosition && row.position.trim()) made.position = row.position.trim();
  const model = row.model || (kind.hasPosition ? "" : everyone);
  if (model) made.model = model;
  return made;
}
