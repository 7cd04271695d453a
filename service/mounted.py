"""The app that `langgraph dev` runs alongside the graphs."""

from contend.service.app import create_app

app = create_app()
