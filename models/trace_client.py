"""Sends a debate's runs to LangSmith, without internal steps and repeated fields."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langgraph.constants import START
from langsmith.client import Client

from contend.graph.settings import SETTINGS

TITLE = "call_title"
"""The metadata key for the name of a call's run."""
OF_DEBATE = "contend"
"""The key under which the inputs and outputs of a debate's runs reach the anonymizer."""
_LENGTH_OF_ID = 36
# What identifies a run that is updated, and what an update adds.
_IDENTITY = {"name", "run_type", "start_time", "trace_id", "dotted_order", "parent_run_id"}
_IDENTITY |= {"session_name", "session_id", "address", "_replica_auths"}
_UPDATED = _IDENTITY | {"outputs", "error", "end_time"}
_FIRST_WORDS = "new_token"
# Parameters of a call that its metadata does not have.
_SHOWN_PARAMETERS = {"tools", "tool_choice", "response_format", "format"}
# What a run below a debate's graph says about itself; the graph's run has everything.
_ABOUT = {"thread_id", "session_id", "conversation_id", "langgraph_node", "langgraph_step"}
_ABOUT |= {"debate_id", "protocol", "round", "seat", "phase", "turn", "call"}
_PREFIX_OF_MODELS = "ls_"
_PAUSE = "GraphInterrupt("
_TAGS_OF_STEPS = ("seq:step:", "graph:step:", "map:key:", "nostream")


class TraceClient(Client):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # The runs that are not sent, by the run of the debate's graph above them.
        self._left_out: dict[str, set[str]] = {}

    def create_run(self, name: str, inputs: dict[str, Any], run_type: Any, **run: Any) -> None:
        extra = run.get("extra") or {}
        about, run_id, graph = extra.get("metadata") or {}, str(run.get("id")), self._graph(run)
        if not graph and name in SETTINGS and about.get("ls_integration") == "langgraph":
            graph = run_id
            self._left_out[graph] = set()
        if not graph:
            super().create_run(name, inputs, run_type, **run)
        elif run_id != graph and _shows_nothing(name, run_type, about):
            self._left_out[graph].add(run_id)
        else:
            run |= _shown_once(run, about if run_id == graph else _about_run(about))
            title, inputs = about.get(TITLE, name), {OF_DEBATE: inputs}
            super().create_run(title, inputs, run_type, **self._lifted(run, graph))

    def update_run(self, run_id: Any, **run: Any) -> None:
        graph = self._graph(run)
        if not graph:
            super().update_run(run_id, **run)
        elif str(run_id) not in self._left_out[graph]:
            super().update_run(run_id, **self._lifted(_update(run), graph))
        if str(run_id) == graph:
            del self._left_out[graph]

    def _graph(self, run: Mapping[str, Any]) -> str:
        return next((each for each in map(_id, _order(run)) if each in self._left_out), "")

    def _lifted(self, run: dict[str, Any], graph: str) -> dict[str, Any]:
        """Return the run, attached to its nearest ancestor that is sent to LangSmith."""
        *above, own = _order(run)
        kept = [each for each in above if _id(each) not in self._left_out[graph]]
        if len(kept) == len(above):
            return run
        return run | {"dotted_order": ".".join([*kept, own]), "parent_run_id": UUID(_id(kept[-1]))}


def _order(run: Mapping[str, Any]) -> list[str]:
    return (run.get("dotted_order") or "").split(".")


def _id(place: str) -> str:
    return place[-_LENGTH_OF_ID:]


def _shows_nothing(name: str, run_type: str, about: Mapping[str, Any]) -> bool:
    """Return whether the run is an internal step between a node and its calls, or a router."""
    if run_type not in ("chain", "parser"):
        return False
    is_task = (about.get("langgraph_path") or (None,))[-1] is True
    return is_task or name == START or name != about.get("langgraph_node")


def _shown_once(run: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    debate = about.get("debate_id") or about.get("thread_id")
    named = {**about, **({"debate_id": debate} if debate else {})}
    tags = [each for each in run.get("tags") or () if not each.startswith(_TAGS_OF_STEPS)]
    extra = {"metadata": named, **_parameters(run.get("extra") or {})}
    return {"extra": extra, "tags": tags, "events": None, "serialized": None}


def _update(run: Mapping[str, Any]) -> dict[str, Any]:
    about = (run.get("extra") or {}).get("metadata") or {}
    events = [each for each in run.get("events") or () if each.get("name") == _FIRST_WORDS]
    update = {name: value for name, value in run.items() if name in _UPDATED}
    update |= {"name": about.get(TITLE, run.get("name")), "events": events or None}
    if run.get("outputs") is not None:
        update["outputs"] = {OF_DEBATE: run["outputs"]}
    if (run.get("error") or "").startswith(_PAUSE):  # a pause needs no stack trace
        update["error"] = run["error"].partition("\n")[0]
    return update


def _about_run(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata to send, naming the graph's node instead of a task within it."""
    node = str(about.get("langgraph_checkpoint_ns", "")).partition(":")[0]
    shown = {
        name: about[name] for name in about if name in _ABOUT or name.startswith(_PREFIX_OF_MODELS)
    }
    return shown | ({"langgraph_node": node} if node else {})


def _parameters(extra: Mapping[str, Any]) -> dict[str, Any]:
    given = extra.get("invocation_params") or {}
    shown = {name: given[name] for name in given if name in _SHOWN_PARAMETERS}
    return {"invocation_params": shown} if shown else {}
