"""Defines the app that `langgraph dev` runs alongside the graphs."""

import os

from contend.debates.threads import ThreadRunner
from contend.graph.runners import run_by
from contend.service.app import create_app
from contend.service.assistants import register_presets
from contend.service.options import ServiceOptions

# Somebody who starts a server for development has not asked it to continue debates.
app = create_app(ServiceOptions(resumes_debates=False), on_start=register_presets)

_address = os.environ.get("LANGGRAPH_API_URL", "").rstrip("/")
run_by(ThreadRunner(lambda: app.state.runs.records, f"LangGraph server {_address}".strip()))
