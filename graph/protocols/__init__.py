"""Defines one strategy per protocol, with the interface in base.py."""
