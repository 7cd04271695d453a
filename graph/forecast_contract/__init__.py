"""The published formats of a forecast's request and result."""
