import graph  # noqa: F401 - its switch must be set before langgraph is imported
