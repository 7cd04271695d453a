"""Runs debates in one system: `python -m benchmarks.peers autogen`, with that system's Python."""

import importlib
import sys

from benchmarks.peers.driver import refuse_other_hosts

if __name__ == "__main__":
    refuse_other_hosts()  # before the import, because some systems connect while they are imported
    importlib.import_module(f"benchmarks.peers.{sys.argv[1]}").main()
