"""Sends LangSmith the runs of a debate that show something, and each of their fields once."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langgraph.constants import START
from langsmith.client import Client

from contend.graph.settings import SETTINGS

TITLE = "call_title"
"""The key in a call's metadata for the name of its run, which a form's steps do not pass on."""
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
        self._graphs: set[str] = set()  # the ids of running debates
        self._left_out: set[str] = set()

    def create_run(self, name: str, inputs: dict[str, Any], run_type: Any, **run: Any) -> None:
        extra = run.get("extra") or {}
        about = extra.get("metadata") or {}
        if self._is_of_start(run, about) or _shows_nothing(name, run_type, about):
            self._left_out.add(str(run["id"]))
        elif not _is_of_debate(name, about):
            super().create_run(name, inputs, run_type, **run)
        else:
            if _is_graph(name, about):
                self._graphs.add(str(run["id"]))
            small = self._lifted(run) | _shown_once(name, run, extra)
            super().create_run(about.get(TITLE, name), inputs, run_type, **small)

    def update_run(self, run_id: Any, **run: Any) -> None:
        about = (run.get("extra") or {}).get("metadata") or {}
        self._graphs.discard(str(run_id))
        if str(run_id) in self._left_out:
            self._left_out.discard(str(run_id))
        elif not _is_of_debate(run.get("name", ""), about):
            super().update_run(run_id, **run)
        else:
            update = {name: value for name, value in run.items() if name in _UPDATED}
            events = [each for each in run.get("events") or () if each["name"] == _FIRST_WORDS]
            update |= {"name": about.get(TITLE, run["name"]), "events": events or None}
            if (run.get("error") or "").startswith(_PAUSE):  # a pause needs no stack trace
                update["error"] = run["error"].partition("\n")[0]
            super().update_run(run_id, **self._lifted(update))

    def _is_of_start(self, run: Mapping[str, Any], about: Mapping[str, Any]) -> bool:
        above = str(run.get("parent_run_id"))
        is_inside = above in self._graphs or above in self._left_out
        return is_inside and about.get("langgraph_node") == START

    def _lifted(self, run: dict[str, Any]) -> dict[str, Any]:
        """Move a run to the nearest run above it that is sent."""
        *above, own = (run.get("dotted_order") or "").split(".")
        kept = [each for each in above if each[-_LENGTH_OF_ID:] not in self._left_out]
        if len(kept) == len(above):
            return run
        parent = UUID(kept[-1][-_LENGTH_OF_ID:]) if kept else None
        return run | {"dotted_order": ".".join([*kept, own]), "parent_run_id": parent}


def _is_graph(name: str, about: Mapping[str, Any]) -> bool:
    return name in SETTINGS and about.get("ls_integration") == "langgraph"


def _is_of_debate(name: str, about: Mapping[str, Any]) -> bool:
    return _is_graph(name, about) or about.get("protocol") in SETTINGS


def _shows_nothing(name: str, run_type: str, about: Mapping[str, Any]) -> bool:
    """Return whether the run is only a step between a node and its calls, or a router."""
    if run_type not in ("chain", "parser") or not {"protocol", "langgraph_node"} <= about.keys():
        return False
    is_task = (about.get("langgraph_path") or (None,))[-1] is True
    return is_task or name != about["langgraph_node"]


def _shown_once(name: str, run: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    about: dict[str, Any] = extra["metadata"]
    kept = dict(about) if _is_graph(name, about) else _about_run(about)
    debate = about.get("debate_id") or about.get("thread_id")
    kept |= {"debate_id": debate} if debate else {}
    tags = [each for each in run.get("tags") or () if not each.startswith(_TAGS_OF_STEPS)]
    extra = {"metadata": kept, **_parameters(extra)}
    return {"extra": extra, "tags": tags, "events": None, "serialized": None}


def _about_run(about: Mapping[str, Any]) -> dict[str, Any]:
    """Name the node in the drawing, instead of a task within it."""
    node = str(about.get("langgraph_checkpoint_ns", "")).partition(":")[0]
    shown = {
        name: about[name] for name in about if name in _ABOUT or name.startswith(_PREFIX_OF_MODELS)
    }
    return shown | ({"langgraph_node": node} if node else {})


def _parameters(extra: Mapping[str, Any]) -> dict[str, Any]:
    given = extra.get("invocation_params") or {}
    shown = {name: given[name] for name in given if name in _SHOWN_PARAMETERS}
    return {"invocation_params": shown} if shown else {}
