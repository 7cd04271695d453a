import os

# Read once, when langgraph is first imported: checkpoints then load only the types our state names.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
