"""Viewers see no thinking and no control block, however the reply is chunked."""

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contend.models.replies.control import without_block
from contend.models.replies.visible import SpeechFilter, split_thinking

TAG = "a1b2c3d4e5"


@pytest.mark.parametrize(
    ("reply", "speech", "thinking"),
    [
        ("plain", "plain", ""),
        ("<think>a</think>b", "b", "a"),
        (" \n<think>a</think>\n<think>b</think>c", " \n\nc", "a\nb"),
        ("<think>b</think>c\n <think> \nd</think>e", "c\n e", "b\nd"),
        ("<think>never closed", "", "never closed"),
        ("said\n<think>\nnever closed", "said\n", "never closed"),
        ("said\n<think>", "said\n", ""),
        ("only closed</think>\nsaid", "\nsaid", "only closed"),
        ("only `closed`\n</think> \r\nsaid", "\nsaid", "only `closed`"),
        ("a</think>\n<think>c</think>d", "\nd", "a\nc"),
        ("<think></think>said", "said", ""),
        ("a < b and <thinking> aloud", "a < b and <thinking> aloud", ""),
    ],
)
def test_separates_speech_from_thinking(reply: str, speech: str, thinking: str) -> None:
    assert split_thinking(reply) == (speech, thinking)


@pytest.mark.parametrize(
    "reply",
    [
        "The `<think>` tag opens the reasoning. Everything else is important.",
        "Reasoning goes between <think> and </think> here.",
        "It ends at `</think>`\nand the answer follows.",
        "It ends at `x\n</think>\n`, see?",
        "It ends at </think> and the answer follows.",
        "The <think> tag,\nand then </think>\nThe answer.",
        "An example:\n```\n<think>\nHm.\n</think>\nYes.\n```\nThat is all.",
        "An example:\n```\nHm.\n</think>\n```\nThat is all.",
        "The tags are\n<think> and\n<thinking>\n, nothing else.",
    ],
)
def test_a_tag_that_is_only_mentioned_is_kept_as_speech(reply: str) -> None:
    assert split_thinking(reply) == (reply, "")
    assert visible(list(reply)) == visible([reply]) == reply


def visible(pieces: list[str]) -> str:
    sieve = SpeechFilter(TAG)
    return "".join([*(sieve.feed(piece) for piece in pieces), sieve.finish()])


def cut(text: str, places: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in pairwise(edges)]


plain = st.text(st.characters(codec="utf-8", exclude_characters="`<>"), max_size=30)
tricky = st.sampled_from(["<", "<thi", "<think", "`", "``", "a<b", "</", ">", "``x", "\n"])
speech = st.one_of(plain, tricky)
code = plain.filter(lambda text: TAG not in text).map(lambda text: f"\n```py\n{text}\n```\n")
thought = st.one_of(plain, st.just("```"), st.just("```json\n{}\n```")).map(
    lambda text: f"\n<think>\n{text}</think>"
)
control = plain.map(lambda text: f'\n```json\n{{"nonce": "{TAG}", "x": "{text}"}}\n```\n')
bare = st.builds(
    lambda text, indent: f"\n{json.dumps({'x': [text], 'nonce': TAG}, indent=indent)}\n",
    plain,
    st.sampled_from([None, 1]),
)
foreign = plain.map(lambda text: f"\n{json.dumps({'x': text, 'nonce': 'another'})}\n")
kinds = st.one_of(
    speech.map(lambda text: (text, text)),
    code.map(lambda text: (text, text)),
    thought.map(lambda text: (text, "\n")),
    bare.map(lambda text: (text, "\n\n")),
    foreign.map(lambda text: (text, text)),
    control.map(lambda text: (text, "\n\n")),
)
SEPARATOR = "."  # keeps two tricky neighbours from making a tag together


@given(st.lists(kinds, max_size=8), st.lists(st.integers(0, 10_000), max_size=30))
def test_visible_text_does_not_depend_on_chunking(
    parts: list[tuple[str, str]], places: list[int]
) -> None:
    reply = SEPARATOR.join(written for written, _ in parts)
    shown = SEPARATOR.join(seen for _, seen in parts)
    assert visible(cut(reply, places)) == shown
    assert visible(list(reply)) == visible([reply]) == shown


@given(st.lists(kinds, max_size=8))
@example([(f'\n```json\n{{"nonce": "{TAG}", "x": ""}}"}}\n```\n', "\n\n")])
@example([(f'\n```json\n{{"nonce": "{TAG}", "x": ""}}\nmore"}}\n```\n', "\n\n")])
def test_streamed_text_equals_stored_text(parts: list[tuple[str, str]]) -> None:
    reply = SEPARATOR.join(written for written, _ in parts)
    assert visible(list(reply)).strip() == without_block(split_thinking(reply)[0], TAG)


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ("said\n<think>\nnever closed", "said\n"),
        ("said\n<think>", "said\n"),
        ("said\n<thi", "said\n<thi"),
        ('said\n{"a": 1', 'said\n{"a": 1'),
        ('said\n{"a":\nnothing', 'said\n{"a":\nnothing'),
        (f'said\n```json\n{{"nonce": "{TAG}"', "said\n"),
        ("said\n```py\nnever closed", "said\n```py\nnever closed"),
        ("ends in <thi", "ends in <thi"),
        ("ends in ``", "ends in ``"),
        ("```\n<think>\nx</think>\n```", "```\n<think>\nx</think>\n```"),
    ],
)
def test_handles_tags_and_blocks_that_are_never_closed(reply: str, shown: str) -> None:
    assert visible(list(reply)) == visible([reply]) == shown


def test_text_is_streamed_as_soon_as_it_is_known_to_be_visible() -> None:
    sieve = SpeechFilter(TAG)
    assert sieve.feed("The cost ") == "The cost "
    assert sieve.feed("is <th") == "is <th"
    assert sieve.feed("irty>\n<th") == "irty>\n"
    assert sieve.feed("ree>\n{") == "<three>\n"
    assert sieve.feed("a, b}") == "{a, b}"
    assert sieve.feed('\n{"a": ') == "\n"
    assert sieve.feed("1} is") == '{"a": 1} is'


@pytest.mark.parametrize(
    "reply",
    [
        f'Speech. {{"nonce": "{TAG}", "ready": true}}',
        f'Speech. {{"nonce": "{TAG}", "points": [{{"text": "a {{brace"}}]}}',
        f'Speech. {{"nonce": "{TAG}", "text": "an \\" escape"}}',
    ],
)
def test_hides_a_control_block_that_follows_text_on_its_line(reply: str) -> None:
    assert visible(list(reply)) == visible([reply]) == "Speech. "


@pytest.mark.parametrize(
    "noise",
    [
        '{"a": [' + "1, " * 30_000,
        "{\n" * 50_000,
        '{"a":\n' * 15_000,
        "<" * 100_000,
        "\n<think" * 15_000,
        "`" * 100_000,
        "```\n" * 25_000,
        "a " * 50_000,
        "<think>" + "so " * 30_000,
    ],
)
def test_streaming_a_long_reply_takes_linear_time(noise: str) -> None:
    """Quadratic scanning took minutes."""
    assert visible(cut(noise, list(range(0, len(noise), 4)))) is not None
    assert visible([noise * 10]) is not None
    assert split_thinking(noise * 10)


def test_code_is_shown_while_it_is_written() -> None:
    sieve = SpeechFilter(TAG)
    pieces = ["See:\n``", "`python\n", "x = {", '"a": 1}\n', "y = 2\n```", "\nDone."]
    assert [sieve.feed(piece) for piece in pieces] == [
        "See:\n",
        "",
        "```python\nx = {",
        '"a": 1}\n',
        "y = 2\n```",
        "\nDone.",
    ]


def test_is_hiding_is_set_as_soon_as_a_control_block_is_recognized() -> None:
    sieve = SpeechFilter(TAG)
    pieces = ["Said.\n\n", '```json\n{"nonce": "', TAG[:4], TAG[4:], '", "ready": true}\n', "```"]
    hiding = []
    for piece in pieces:
        sieve.feed(piece)
        hiding.append(sieve.is_hiding)
    assert hiding == [False, False, False, True, True, False]
