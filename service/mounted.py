"""The app that `langgraph dev` runs with the graphs."""

from contend.service.app import create_app

app = create_app()
