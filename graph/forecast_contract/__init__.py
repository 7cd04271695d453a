"""The published request and result of a forecast; missing results are null, see `report.gaps`."""
