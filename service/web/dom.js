// Builds elements from text and known attributes; nothing here parses HTML but `setServerHtml`.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open", "selected", "multiple", "required"]);

function setAttribute(node, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
  else if (PROPERTIES.has(name)) node[name] = value;
  else node.setAttribute(name, value === true ? "" : String(value));
}

const isShown = (child) => child !== null && child !== undefined && child !== false && child !== "";
const isAttributes = (given) => given !== null && typeof given === "object" && !(given instanceof Node) && !Array.isArray(given);

function fill(node, classes, given) {
  if (classes.length) node.setAttribute("class", classes.join(" "));
  const attributes = isAttributes(given[0]) ? given[0] : null;
  for (const [name, value] of Object.entries(attributes || {})) setAttribute(node, name, value);
  node.append(...given.slice(attributes ? 1 : 0).flat(3).filter(isShown));
  return node;
}

/** Create an element from `tag.class`, attributes if any, and children. */
export function el(name, ...given) {
  const [tag, ...classes] = name.split(".");
  return fill(document.createElement(tag), classes, given);
}

export function svg(name, ...given) {
  const [tag, ...classes] = name.split(".");
  return fill(document.createElementNS(SVG, tag), classes, given);
}

/** Replace the children of a node. */
export function show(node, ...children) {
  node.replaceChildren(...children.flat(3).filter(isShown));
  return node;
}

/** Parse HTML that the server has rendered and cleaned. */
export function parseServerHtml(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  // What may scroll sideways must be reachable by keyboard.
  for (const wide of template.content.querySelectorAll("pre, table")) wide.setAttribute("tabindex", "0");
  return template.content;
}

/** Replace the top-level elements of a text from `block` on. */
export function patchBlocks(node, block, html) {
  while (node.children.length > block) node.lastElementChild.remove();
  node.append(parseServerHtml(html));
}

export function button(text, onclick, attributes = {}) {
  return el("button", { type: "button", class: "button", onclick, ...attributes }, text);
}

export function hiddenText(text) {
  return el("span.visually-hidden", text);
}

/** Return a function that runs `action` once calls to it have stopped for `wait` ms. */
export function debounce(action, wait) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), wait);
  };
}

export function announce(text) {
  const region = document.getElementById("announcer");
  region.textContent = region.textContent === text ? `${text}\u00a0` : text;
}

/** Ask for a confirmation in a dialog; resolve to true or false. */
export function confirmDialog(title, text, yes) {
  return new Promise((resolve) => {
    const dialog = el("dialog.dialog", { "aria-labelledby": "dialog-title" },
      el("form", { method: "dialog" },
        el("h2", { id: "dialog-title" }, title),
        el("p", text),
        el("div.dialog-buttons",
          el("button.button", { value: "no" }, "Cancel"),
          el("button.button.button-danger", { value: "yes" }, yes))));
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
