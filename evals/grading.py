import re
from dataclasses import dataclass

from contend.evals.items import Item
from contend.models.replies.short_answer import (
    answer_key,
    brief_answer,
    parse_number,
    stated_answer,
)

_FORMS = {
    "choice": "`Answer: X`, where X is the letter of the option",
    "number": "`Answer: N`, where N is a number without a unit",
    "yes_no": "`Answer: yes` or `Answer: no`",
    "text": "`Answer: ...`, with nothing but the answer",
    "forecast": "`Probability: P`, where P is a number from 0 to 1: how likely it is that the "
    "question resolves to yes",
}
_PROBABILITY = re.compile(r"probability\W*(?:is|of)?\W*(\d*\.?\d+)\s*(%?)", re.IGNORECASE)
_NUMBER = re.compile(r"[-−]?[$€£]?\d[\d,]*(?:\.\d+)?")
_LETTER = re.compile(r"(?:^|[\s(*])([A-Z])(?=$|[\s).,:;*])")


@dataclass(frozen=True)
class Grade:
    """An answer parsed from a reply, if any; `right` is None for open questions."""

    answer: str | None
    right: bool | None
    probability: float | None = None  # that the answer is yes

    @property
    def is_unreadable(self) -> bool:
        return self.answer is None


def question_text(item: Item) -> str:
    options = "\n".join(
        f"{letter}. {option}" for letter, option in zip(item.letters, item.options, strict=True)
    )
    form = _FORMS.get(item.kind)
    end = f"End your reply with one line: {form}." if form else ""
    return "\n\n".join(filter(None, (item.question, options, end)))


def grade(reply: str, item: Item) -> Grade:
    if item.kind == "open":
        return Grade(reply.strip() or None, None)
    if item.kind == "forecast":
        return grade_probability(_read_probability(reply), item)
    return grade_answer(_READERS[item.kind](reply, item), item)


def grade_answer(answer: str | None, item: Item) -> Grade:
    return Grade(answer, answer is not None and is_right(answer, item))


def grade_probability(probability: float | None, item: Item) -> Grade:
    if probability is None:
        return Grade(None, False)
    answer = "yes" if probability >= 0.5 else "no"
    return Grade(answer, answer == item.answer, probability)


def is_right(answer: str, item: Item) -> bool:
    if item.kind == "number":
        stated, true = parse_number(answer), parse_number(item.answer)
        if stated is None or true is None:
            return False
        return abs(stated - true) <= max(item.tolerance * abs(true), 1e-6 * max(1.0, abs(true)))
    accepted = [item.answer, *item.also]
    return answer_key(answer) in {answer_key(each) for each in accepted}


def _read_choice(reply: str, item: Item) -> str | None:
    stated = stated_answer(reply) or brief_answer(reply)
    if stated is None:
        return None
    key = answer_key(stated)
    if len(key) == 1 and key in item.letters:
        return key
    texts = [answer_key(option) for option in item.options]
    if key in texts:
        return item.letters[texts.index(key)]
    named = {letter for letter in _LETTER.findall(stated) if letter in item.letters}
    return named.pop() if len(named) == 1 else None


def _read_number(reply: str, _item: Item) -> str | None:
    stated = stated_answer(reply) or brief_answer(reply)
    if stated is None:
        return None
    if (number := parse_number(stated)) is None:
        # "x = 12 apples per day": the result is the last number.
        found = _NUMBER.findall(stated.rpartition("=")[2])
        number = parse_number(found[0]) if len(found) == 1 else None
    return None if number is None else f"{number:.12g}"


def _read_yes_no(reply: str, _item: Item) -> str | None:
    stated = stated_answer(reply) or brief_answer(reply)
    key = answer_key(stated) if stated else ""
    words = {"true": "yes", "false": "no"}
    key = words.get(key, key)
    return key if key in ("yes", "no") else None


def _read_text(reply: str, _item: Item) -> str | None:
    return stated_answer(reply) or brief_answer(reply)


def _read_probability(reply: str) -> float | None:
    found = _PROBABILITY.findall(reply)
    if not found:
        return None
    number, percent = found[-1]
    value = float(number) / (100 if percent else 1)
    return value if 0 <= value <= 1 else None


_READERS = {
    "choice": _read_choice,
    "number": _read_number,
    "yes_no": _read_yes_no,
    "text": _read_text,
}
