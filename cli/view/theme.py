from rich.theme import Theme

# Yellow is kept for warnings, and dark blue is unreadable on black.
_SEAT_COLOURS = (
    "cyan", "magenta", "green", "bright_blue", "bright_red", "bright_magenta", "bright_cyan",
    "bright_green", "white",
)  # fmt: skip
THEME = Theme(
    {
        "error": "red",
        "warning": "yellow",
        "success": "green",
        "running": "cyan",
        "bar": "cyan",
        "spinner": "green",
        "heading": "bold",
        "muted": "dim",
        "added": "green",
        "removed": "red strike",
        "thinking": "dim italic",
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold italic",
        "markdown.h5": "italic",
        "markdown.h6": "italic",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.item.bullet": "cyan",
        "markdown.item.number": "cyan",
        "markdown.block_quote": "italic",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.hr": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        **{f"seat{at}": colour for at, colour in enumerate(_SEAT_COLOURS)},
        **{f"seat{at}.title": f"bold {colour}" for at, colour in enumerate(_SEAT_COLOURS)},
        **{f"seat{at}.out": f"strike {colour}" for at, colour in enumerate(_SEAT_COLOURS)},
    }
)


def seat_style(place: int) -> str:
    """Return the style name for the seat at this index; append `.title` or `.out` for variants."""
    return f"seat{place % len(_SEAT_COLOURS)}"
