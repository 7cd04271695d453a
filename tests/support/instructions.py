import re

_ROLE = re.compile(
    r"^## Your role\n(.+?)(?=\n\n## |\Z)"
    r"|^(You are the [^\n]+? of the panel\b.*?)(?=\n\n|\Z)",
    re.MULTILINE | re.DOTALL,
)


def instructions_in(system: str, messages: str) -> str:
    """Return the speaker's role, which a message contains, and the system message."""
    roles = [found[1] or found[2] for found in _ROLE.finditer(messages)]
    return "\n\n".join([*roles[-1:], system])
