"""The exit codes of the `contend` command."""

OK = 0
FAILED = 1
BAD_INPUT = 2
PAUSED = 3
MODEL_FAILED = 4
DIFFERS = 5
