# Scores and probabilities have far fewer digits, and float rounding errors are far smaller.
_DECIMALS = 9


def is_above(value: float, limit: float) -> bool:
    """Compare without rounding errors: 0.1 + 0.2 is not above 0.3."""
    return round(value - limit, _DECIMALS) > 0


def is_below(value: float, limit: float) -> bool:
    return is_above(limit, value)
