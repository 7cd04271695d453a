"""One strategy per protocol; base.py is the contract, graph/settings registers the protocols."""
