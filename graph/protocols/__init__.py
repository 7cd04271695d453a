"""One strategy per protocol; base.py defines the interface, graph/settings lists the protocols."""
