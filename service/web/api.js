// Talks to the HTTP API: requests, the service token, and the event stream of a debate.

const ROOT = "/api/v1";
const TOKEN_KEY = "contend-token";

export class ApiError extends Error {
  constructor(status, body) {
    super(body.detail || `The server answered with status ${status}.`);
    this.status = status;
    this.problems = body.problems || [];
  }
}

/** Thrown when the server cannot be reached. */
export class Unreachable extends Error {
  constructor() {
    super("The server cannot be reached. Check that it is running, then try again.");
  }
}

let askForToken = async () => null;

/** Register the form that asks for the service token. */
export function onTokenNeeded(ask) {
  askForToken = ask;
}

export function takeTokenFromAddress() {
  const found = /[#&]token=([^&]+)/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem(TOKEN_KEY, decodeURIComponent(found[1]));
  const rest = location.hash.replace(/[#&]token=[^&]+/, "");
  history.replaceState(null, "", location.pathname + (rest.startsWith("#") ? rest : `#${rest || "/"}`));
}

function tokenHeader() {
  const token = sessionStorage.getItem(TOKEN_KEY);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

async function send(path, options = {}) {
  const headers = { ...options.headers, ...tokenHeader() };
  let response;
  try {
    response = await fetch(ROOT + path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable();
  }
  if (response.status === 401) {
    const token = await askForToken();
    if (token) {
      sessionStorage.setItem(TOKEN_KEY, token);
      return send(path, options);
    }
  }
  if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => ({})));
  return response;
}

async function get(path) {
  return (await send(path)).json();
}

async function post(path, body) {
  const options = { method: "POST" };
  if (body instanceof FormData) options.body = body;
  else Object.assign(options, { body: JSON.stringify(body || {}), headers: { "Content-Type": "application/json" } });
  return (await send(path, options)).json();
}

const debatePath = (id, more = "") => `/debates/${encodeURIComponent(id)}${more}`;

let protocols;
let models;

/** Return the protocols; they are loaded once. */
export function getProtocols() {
  protocols ??= get("/protocols").then((found) => found.protocols).catch((error) => {
    protocols = undefined;
    throw error;
  });
  return protocols;
}

export function getModels() {
  models ??= get("/models").catch((error) => {
    models = undefined;
    throw error;
  });
  return models;
}

export const getPresets = () => get("/presets").then((found) => found.presets);
export const getEstimate = (request) => post("/estimate", request);
export const getDebate = (id) => get(debatePath(id));
export const getScoreboard = () => get("/scoreboard");

export function listDebates(filters = {}) {
  const given = Object.entries(filters).filter(([, value]) => value);
  return get(`/debates?${new URLSearchParams(given)}`);
}

export function startDebate(request, files) {
  if (!files.length) return post("/debates", request);
  const form = new FormData();
  form.append("debate", JSON.stringify(request));
  for (const file of files) form.append(file.type.startsWith("image/") ? "images" : "documents", file, file.name);
  return post("/debates", form);
}

export const pauseDebate = (id) => post(debatePath(id, "/pause"));
export const resumeDebate = (id, say, budget = {}) => post(debatePath(id, "/resume"), { ...(say && { say }), ...budget });
export const finishDebate = (id, say) => post(debatePath(id, "/finish"), say ? { say } : {});
export const rateDebate = (id, rating) => post(debatePath(id, "/rate"), { rating });
export const resolveForecast = (id, outcome) => post(debatePath(id, "/resolve"), { outcome });
export const forkDebate = (id, wanted) => post(debatePath(id, "/forks"), wanted);
export const getReply = (id, turn) => get(debatePath(id, `/turns/${encodeURIComponent(turn)}/reply`));
export const getFamily = (id) => get(debatePath(id, "/family"));
export const getDiff = (id, other) => get(debatePath(id, `/diff/${encodeURIComponent(other)}`));
export const deleteDebate = (id) => send(debatePath(id), { method: "DELETE" });

/** Save an export as a file; a link could not carry the token. */
export async function downloadExport(id, format) {
  const response = await send(debatePath(id, `/export?format=${format}`));
  const named = /filename="?([^";]+)"?/.exec(response.headers.get("Content-Disposition") || "");
  const address = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = named ? named[1] : `debate-${id.slice(0, 8)}.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function openEventStream(id, after, signal) {
  const query = new URLSearchParams({ html: "true", chunks: "open" });
  const headers = { Accept: "text/event-stream" };
  if (after) headers["Last-Event-ID"] = String(after);
  return send(debatePath(id, `/events?${query}`), { headers, signal, cache: "no-store" });
}
