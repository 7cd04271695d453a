"""The app that `langgraph dev` runs beside the graphs."""

from service.app import create_app

app = create_app()
