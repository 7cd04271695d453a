"""The app that `langgraph dev` runs beside the graphs."""

from contend.service.app import create_app

app = create_app()
