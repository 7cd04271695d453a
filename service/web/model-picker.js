// A text field that offers the models that can be used now; any other model may be typed.

import { el, show } from "./dom.js";

let made = 0;

/** Return a combobox; `value` is empty while the default applies. */
export function modelPicker({ label, models, placeholder, value = "", onChange }) {
  const listId = `models-${++made}`;
  const list = el("ul.options", { id: listId, role: "listbox", "aria-label": "Models", hidden: true });
  const input = el("input", {
    class: "picker-input", role: "combobox", "aria-label": label, "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": listId,
    autocomplete: "off", spellcheck: "false", placeholder, value,
    onfocus: open, onclick: open, oninput() { active = -1; open(); onChange(input.value.trim()); }, onblur: () => setTimeout(close, 150), onkeydown: onKey,
  });
  let active = -1;

  function matching() {
    const typed = input.value.trim().toLowerCase();
    const found = models.filter((model) => model.spec.toLowerCase().includes(typed));
    return found.length && found[0].spec !== input.value.trim() ? found : models;
  }

  function open() {
    const found = matching();
    show(list, found.map((model, at) => el("li.option", { role: "option", id: `${listId}-${at}`, "aria-selected": String(at === active), onmousedown: (event) => { event.preventDefault(); choose(model.spec); } },
      el("span", model.spec), el("small", model.note || model.provider))));
    if (!found.length) return close();
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    if (active >= 0) input.setAttribute("aria-activedescendant", `${listId}-${active}`);
    else input.removeAttribute("aria-activedescendant");
    return undefined;
  }

  function close() {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(spec) {
    input.value = spec;
    close();
    onChange(spec);
  }

  function move(step) {
    const length = matching().length;
    if (!length) return;
    active = (active + step + length) % length;
    open();
    list.children[active]?.scrollIntoView({ block: "nearest" });
  }

  function onKey(event) {
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(active < 0 ? 0 : -1);
    else if (event.key === "Enter" && active >= 0 && !list.hidden) choose(matching()[active].spec);
    else if (event.key === "Escape" && !list.hidden) close();
    else return;
    event.preventDefault();
  }

  return { node: el("span.picker", input, list), input };
}
