import re

_ROLE = re.compile(
    r"^## Your role\n(.+?)(?=\n\n## |\Z)"
    r"|^(You are the [^\n]+? of the panel\b.*?)(?=\n\n|\Z)",
    re.MULTILINE | re.DOTALL,
)


def instructions_in(system: str, user: str) -> str:
    """Return the speaker's role, which its message contains, and the system message."""
    roles = [found[1] or found[2] for found in _ROLE.finditer(user)]
    return "\n\n".join([*roles[-1:], system])
