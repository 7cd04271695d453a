"""Keeps traces sent to LangSmith small, readable and free of secrets."""

import re
from collections.abc import Mapping
from typing import Any

from langsmith import run_trees
from langsmith.utils import tracing_is_enabled

from contend.models.failures import scrub
from contend.models.trace_client import OF_DEBATE, TraceClient

_ROUND = re.compile(r"r(\d+)\.")
# The keys of a dictionary that is a state, a turn, a seat, or the content of a model call.
_OF_STATE = {"seats", "turns", "protocol", "settings"}
_OF_TURN = {"id", "phase", "seat", "text", "usage"}
_OF_SEAT = {"id", "role", "model", "temperature"}
_OF_CALL = {"messages", "generations"}
_SHOWN_OF_MESSAGE = {"content", "type", "name", "tool_calls", "tool_call_id", "status"}
_SHOWN_OF_MESSAGE |= {"additional_kwargs", "response_metadata", "usage_metadata"}
# The fields of the state that the run of a node shows.
_SHOWN_OF_STATE = ("question", "protocol", "round", "stop", "final_answer")
# Large fields of the state that a node gets and returns.
_LEFT_OUT = {
    *("state", "settings", "trace", "retrieval", "request", "documents", "images", "seats"),
    *("programme", "spans", "forecast"),
}
# Metadata that concerns only LangGraph and the process, or repeats the parameters of a call.
_LEFT_OUT_METADATA = {
    *("langgraph_path", "langgraph_triggers", "langgraph_checkpoint_ns", "checkpoint_ns"),
    *("lc_versions", "revision_id", "LANGSMITH_ENDPOINT", "LANGSMITH_TRACING"),
    *("model", "model_name", "temperature", "max_completion_tokens", "_type", "stop"),
}


def scrub_traces() -> None:
    # A program that calls Contend may have set a client with its own privacy options.
    if tracing_is_enabled() and run_trees._CLIENT is None:
        client = TraceClient(anonymizer=shorten_and_scrub, omit_traced_runtime_info=True)
        run_trees.configure(client=client)


def call_metadata(
    protocol: str, debate: str, seat: str, asked: str, turn: str = ""
) -> dict[str, Any]:
    round_number = _ROUND.match(asked)
    about = {"debate_id": debate, "protocol": protocol, "seat": seat, "call": asked}
    about |= {"turn": turn} if turn else {}
    place = turn or asked
    phase = {"phase": place.split(".")[1]} if place.count(".") > 1 else {}
    return about | phase | ({"round": int(round_number[1])} if round_number else {})


def call_title(seat_name: str, asked: str) -> str:
    round_number = _ROUND.match(asked)
    return f"{seat_name}, round {round_number[1]}" if round_number else seat_name


def shorten_and_scrub(data: dict[str, Any]) -> Any:
    """Remove secrets from any run; shorten inputs, outputs and metadata of a debate's runs."""
    if OF_DEBATE in data:
        return scrub_data(_shorten(data[OF_DEBATE]))
    if "debate_id" in data:
        data = {name: data[name] for name in data if name not in _LEFT_OUT_METADATA}
    return scrub_data(data)


def _shorten(data: Any) -> Any:
    """Shorten traced data: states to a few fields, and turns and seats to their ids."""
    if isinstance(data, list):
        return [_shorten(each) for each in data]
    if not isinstance(data, dict):
        return data
    if not _OF_CALL.isdisjoint(data):
        return {name: _shorten_call(data[name]) for name in _OF_CALL if name in data}
    if data.keys() >= _OF_TURN or data.keys() >= _OF_SEAT:
        return data["id"]
    if "question" in data and not _OF_STATE.isdisjoint(data):
        return _shorten_state(data)
    return {name: _shorten(each) for name, each in data.items() if name not in _LEFT_OUT}


def _shorten_call(data: Any) -> Any:
    """Remove empty fields, and fields that repeat a message's text."""
    if isinstance(data, list):
        return [_shorten_call(each) for each in data]
    if not isinstance(data, dict):
        return data
    if "message" in data:  # what a model answered
        return {"message": _shorten_call(data["message"])}
    if "kwargs" not in data:
        return data
    shown = {name: data["kwargs"][name] for name in data["kwargs"] if name in _SHOWN_OF_MESSAGE}
    return {**data, "kwargs": {name: value for name, value in shown.items() if value}}


def _shorten_state(state: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: state[name] for name in _SHOWN_OF_STATE if name in state}
    turns = state.get("turns") or []
    return shown | {"turns": len(turns)}


def scrub_data(data: Any) -> Any:
    if isinstance(data, str):
        return scrub(data)
    if isinstance(data, dict):
        return {key: scrub_data(value) for key, value in data.items()}
    return [scrub_data(each) for each in data] if isinstance(data, list) else data
