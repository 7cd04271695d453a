import re
from collections import Counter
from collections.abc import Iterable

_SAID = re.compile(
    r"\b(?:final\s+|correct\s+|right\s+|best\s+)?answer[*_\s]*"
    r"(?:\bis\b|\bmust be\b|\bwould be\b|:|=)(?:\s*option\b)?[*_:\s]*(?=[^\s*_])",
    re.IGNORECASE,
)
_HASHES = re.compile(r"^####\s*(?=\S)", re.MULTILINE)
_BOXED = re.compile(r"\\boxed\s*\{(?P<answer>(?:[^{}]|\{[^{}]*\})+)\}")
_TEX_TEXT = re.compile(r"\\(?:text|mathrm|mathbf)\s*\{([^{}]*)\}")
_REASON = re.compile(
    r"(?:,\s*|\s+[-–—(]\s*|\s+)(?:because|since|as|which|assuming)\b.*", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[^\s.])[.!?]\s+(?=[A-Z]).*")
_LETTER = re.compile(r"\(?([A-Za-z])(?:[).:]|\s*$)")
_NUMBER = re.compile(r"[-−+]?\s*[$€£]?\s*[-−]?((?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)\s*(.*)")
_UNIT = re.compile(
    r"(?!(?:of|or|to|and|in|out|by|x|times)\b)[^\W\d]*%?(?:\s(?!or\b|to\b|and\b)[^\W\d]+){0,2}[.]?"
)
_MOST_CHARACTERS, _MOST_WORDS = 60, 3


def stated_answer(text: str) -> str | None:
    """Return the text after the last `Answer:`, "the answer is" or `####`, or in a LaTeX box."""
    labels = [match for rule in (_SAID, _HASHES) for match in rule.finditer(text)]
    said = max((match.end() for match in labels), default=-1)
    boxes = [match for match in _BOXED.finditer(text) if match.start() >= said]
    if not labels and not boxes:
        return None
    return _plain(boxes[-1]["answer"] if boxes else text[said:].splitlines()[0]) or None


def brief_answer(text: str) -> str | None:
    answer = stated_answer(text)
    if answer is None:
        lines = text.strip().splitlines()
        answer = _plain(lines[0]) if len(lines) == 1 else ""
        return answer if 0 < len(answer.split()) <= _MOST_WORDS else None
    answer = _REASON.sub("", _SENTENCE_END.sub("", answer)).rstrip(" .,;")
    return answer if 0 < len(answer) <= _MOST_CHARACTERS else None


def answer_key(answer: str) -> str:
    """Normalize a short answer, so that different spellings compare as equal."""
    plain = _plain(answer)
    if (letter := _LETTER.match(plain)) and not plain.casefold().startswith(("i ", "a ")):
        return letter[1].upper()
    if re.match(r"(?:yes|no)\b(?!\s+one)", plain, re.IGNORECASE):
        return plain.split()[0].strip(".,;:").casefold()
    if (number := parse_number(plain)) is not None:
        return f"{number:g}"
    words = re.sub(r"[^\w\s]", "", plain.casefold()).split()
    return " ".join(words) or "".join(plain.split())


def parse_number(answer: str) -> float | None:
    """Return the number in an answer such as `$1,200`, `18 dollars` or `-3`, or None."""
    found = _NUMBER.fullmatch(answer.strip())
    if not found or not _UNIT.fullmatch(found[2].strip()):
        return None
    sign = -1 if re.match(r"[$€£\s]*[-−]", answer.strip()) else 1
    return sign * float(found[1].replace(",", ""))


def most_frequent(keys: Iterable[str | None]) -> str | None:
    counted = Counter(key for key in keys if key is not None).most_common(2)
    if not counted or (len(counted) == 2 and counted[0][1] == counted[1][1]):
        return None
    return counted[0][0]


def _plain(text: str) -> str:
    if not re.search(r"\w", text):
        return text.strip()
    text = _TEX_TEXT.sub(r"\1", text).replace("\\$", "$").replace("\\%", "%")
    text = re.sub(r"\\[()\[\]!,;]|[*_`]{1,3}|\\left|\\right", "", text).strip()
    if text.count("$") == 2 and text.startswith("$"):  # TeX, not dollars
        text = text.replace("$", "")
    text = text.strip().strip("\"'“”{} ").rstrip(" .,;:")
    return text[1:-1].strip() if re.fullmatch(r"\([^()]*\)|\[[^\[\]]*\]", text) else text
