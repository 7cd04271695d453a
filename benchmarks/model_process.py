"""The model server as a process: readable answers of a fixed length after a fixed delay."""

import argparse
import json
import re
import sys

from tests.support.model_server import Call, ModelServer, Reply, Request, Script

_DOUBTS = {
    "ready": False,
    "score": 4,
    "points": [{"id": "", "severity": "critical", "status": "open", "text": "It costs too much."}],
}
_RATINGS = {
    **dict.fromkeys(("correctness", "completeness", "clarity", "depth"), 7),
    "justification": "Sound.",
    "would_benefit_from_finetune": False,
}
_DECISIONS = {"skeptic": _DOUBTS, "judge": _RATINGS}


def speaker(tokens: int, delay: float, chunk_delay: float) -> Script:
    """A script whose Skeptic never gives in, so that a debate takes all its rounds."""
    words = " ".join(f"word{n}" for n in range(tokens))

    def speak(request: Request) -> Reply:
        text, decided = words, _DECISIONS.get(request.model)
        if decided and (tag := re.search(r'"nonce": "(\w+)"', request.text)):
            text += f"\n\n```json\n{json.dumps({'nonce': tag.group(1), **decided})}\n```"
        return Reply(text, delay=delay, chunk_delay=chunk_delay)

    return speak


def main() -> None:
    """Serve until stdin closes; answer each line with the calls since the last one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--chunk-delay", type=float, default=0.0)
    options = parser.parse_args()
    script = speaker(options.tokens, options.delay, options.chunk_delay)
    with ModelServer(script, models=None) as server:
        print(server.openai_url, flush=True)
        told = 0
        for _ in sys.stdin:
            calls = server.wait_for_idle()
            print(json.dumps([_seen(call) for call in calls[told:]]), flush=True)
            told = len(calls)


def _seen(call: Call) -> dict[str, object]:
    request = call.request
    return {
        "model": request.model,
        "messages": request.messages,
        "started": call.started,
        "ended": call.ended,
    }


if __name__ == "__main__":
    main()
