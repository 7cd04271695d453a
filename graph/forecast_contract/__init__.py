"""The published formats of a forecast's request and result; `report.gaps` explains null values."""
