// Follows the events of a debate: parses the stream, and reconnects where it left off.

import { ApiError, openEventStream } from "./api.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

/** Yield the data of each message in a stream of server-sent events. */
async function* readMessages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const messages = (rest + value).split(/\r?\n\r?\n/);
    rest = messages.pop();
    for (const message of messages) {
      const data = message.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      if (data.length) yield JSON.parse(data.join("\n"));
    }
  }
}

/**
 * Follow a debate until it is complete or `stop()` is called.
 * `onState` gets "open", "waiting" (with the seconds until the next try), "ended" or "gone".
 */
export function followDebate(id, { onEvent, onState }) {
  const control = new AbortController();
  let lastSeq = 0;
  let wait = FIRST_WAIT;
  let retryNow = () => {};

  async function readOnce() {
    const response = await openEventStream(id, lastSeq, control.signal);
    if (response.status === 204) return true; // complete, and everything was seen
    onState("open");
    for await (const event of readMessages(response.body)) {
      wait = FIRST_WAIT;
      if (event.seq <= lastSeq) continue;
      lastSeq = event.seq;
      onEvent(event);
      if (event.event === "complete") return true;
    }
    return false;
  }

  async function pauseBeforeRetry() {
    const length = wait * (0.8 + 0.4 * Math.random());
    wait = Math.min(wait * 2, LONGEST_WAIT);
    onState("waiting", Math.ceil(length / 1000));
    await new Promise((resolve) => {
      retryNow = resolve;
      setTimeout(resolve, length);
    });
  }

  async function run() {
    while (!control.signal.aborted) {
      try {
        if (await readOnce()) return onState("ended");
      } catch (error) {
        if (control.signal.aborted) return undefined;
        if (error instanceof ApiError && error.status < 500 && error.status !== 429) return onState("gone", error);
      }
      if (control.signal.aborted) return undefined;
      await pauseBeforeRetry();
    }
    return undefined;
  }

  const online = () => retryNow();
  window.addEventListener("online", online);
  run();
  return {
    retry: () => retryNow(),
    stop() {
      window.removeEventListener("online", online);
      control.abort();
      retryNow();
    },
  };
}
