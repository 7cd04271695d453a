"""Defines the app that `langgraph dev` runs alongside the graphs."""

from contend.service.app import create_app
from contend.service.assistants import register_presets

app = create_app(on_start=register_presets)
