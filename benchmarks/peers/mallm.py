"""MALLM: three panelists with a shared memory, and a judge's summary after three turns."""

import os
from pathlib import Path

import evaluate
import httpx
from openai import OpenAI
from rich.console import Console

from benchmarks.peers.driver import MODEL, QUESTION, ROUNDS, RULES, SPEAKERS, in_threads, serve


def main() -> None:
    # It downloads metrics when it is imported, and embedding models when its scheduler starts.
    # A debate uses neither, so this leaves them out and does what the scheduler does per debate.
    evaluate.load = lambda _name: None
    from mallm.coordinator import Coordinator
    from mallm.models.Chat import Chat
    from mallm.utils.config import Config
    from mallm.utils.types import InputExample, WorkerFunctions

    url, key = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
    config = Config(
        input_json_file_path="",
        output_json_file_path=str(Path.home() / "out.json"),
        task_instruction_prompt=RULES,
        max_turns=ROUNDS,
        decision_protocol="judge",
        visible_turns_in_memory=ROUNDS,
        use_chain_of_thought=False,
        num_agents=len(SPEAKERS),
    )
    model = Chat(client=OpenAI(base_url=url, api_key=key, timeout=3600), model=MODEL)
    sample = InputExample("one", None, [QUESTION], None, [])

    def debate() -> None:
        with httpx.Client() as client:
            personas = ["nopersona"] * len(SPEAKERS)
            panel = Coordinator(
                model=model,
                client=client,
                agent_generators=personas,
                console=Console(record=True),
            )
            panel.discuss(config, sample, WorkerFunctions(None, None, None))

    serve(in_threads(debate), "mallm", "openai")
