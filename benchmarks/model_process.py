"""Runs a model server whose valid answers have a fixed length and a fixed delay."""

import argparse
import hashlib
import json
import re
import sys
from dataclasses import replace

from benchmarks.panel import panel
from tests.support.floor_server import decided, part_of
from tests.support.model_server import Call, ModelServer, Reply, Request, Script

_DOUBTS: dict[str, object] = {
    "ready": False,
    "score": 4,
    "points": [{"id": "", "severity": "critical", "status": "open", "text": "It costs too much."}],
}
_RATINGS: dict[str, object] = {
    **dict.fromkeys(("correctness", "completeness", "clarity", "depth"), 7),
    "justification": "Sound.",
    "would_benefit_from_finetune": False,
}
DECISIONS = {"skeptic": _DOUBTS, "judge": _RATINGS}
# The requested control block shows which decision in a forum is wanted.
_BY_FORM: dict[str, dict[str, object]] = {
    '"convinced": <': {"convinced": False, "reasoning": "Mine holds."},
    '"decision": <': {"decision": "continue", "reasoning": "Much is open."},
}
_CLAIMS: dict[str, object] = {"claims": [f"Claim number {n} is so." for n in (1, 2, 3)]}


def speaker(tokens: int, delay: float, chunk_delay: float, *, keeps_pace: bool = False) -> Script:
    """Script a debate without concessions, so that the debate uses all rounds."""
    words = " ".join(f"word{n}" for n in range(tokens))

    def speak(request: Request) -> Reply:
        text, block = words, _decision(request)
        if block and (tag := re.search(r'"nonce": "(\w+)"', request.text)):
            text += f"\n\n```json\n{json.dumps({'nonce': tag.group(1), **block})}\n```"
        return Reply(text, delay=delay, chunk_delay=chunk_delay, keeps_pace=keeps_pace)

    return speak


def marked(script: Script) -> Script:
    def speak(request: Request) -> Reply:
        reply = script(request)
        said = reply if isinstance(reply, Reply) else Reply(reply)
        mark = hashlib.sha256(json.dumps(request.messages).encode()).hexdigest()[:12]
        return replace(said, text=f"mark-{mark} {said.text}", chunk_size=40, chunk_delay=0.004)

    return speak


def _decision(request: Request) -> dict[str, object] | None:
    if request.model == "floor":
        what = part_of(request)
        return _CLAIMS if what == "claims" else decided(what, request)
    by_form = (block for form, block in _BY_FORM.items() if form in request.text)
    return next(by_form, DECISIONS.get(request.model))


def main() -> None:
    """Serve until stdin closes; for each line on stdin, print the calls since the previous line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--chunk-delay", type=float, default=0.0)
    parser.add_argument("--keep-pace", action="store_true", help="send late tokens together")
    parser.add_argument("--panel", action="store_true", help="speak as a forecasting panel")
    parser.add_argument("--mark", action="store_true", help="begin every reply with its own mark")
    options = parser.parse_args()
    script = speaker(
        options.tokens, options.delay, options.chunk_delay, keeps_pace=options.keep_pace
    )
    if options.panel:
        script = panel(options.delay)
    if options.mark:
        script = marked(script)
    with ModelServer(script, models=None) as server:
        print(server.openai_url, flush=True)
        reported = 0
        for _ in sys.stdin:
            calls = server.wait_for_idle()
            seen = [_seen(call, script) for call in calls[reported:]]
            print(json.dumps(seen), flush=True)
            reported = len(calls)


def _seen(call: Call, script: Script) -> dict[str, object]:
    request, reply = call.request, script(call.request)
    return {
        "model": request.model,
        "messages": request.messages,
        "started": call.started,
        "ended": call.ended,
        "reply": reply if isinstance(reply, str) else reply.text,
    }


if __name__ == "__main__":
    main()
