"""Defines one strategy per protocol; base.py has the interface, graph/settings the protocols."""
