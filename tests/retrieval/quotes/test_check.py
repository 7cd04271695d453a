"""Quote checking: detection, matching and speed."""

import random
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contend.graph.values import QuoteCheck
from contend.retrieval.documents import Corpus, DocumentPage
from contend.retrieval.quotes.check import check_quotes
from tests.retrieval.test_documents import at_once

HANDBOOK = (
    DocumentPage(
        1, "Smart is long, and art is longer. The committee meets every second Tues-\nday."
    ),
    DocumentPage(2, "Staff shall wear well-\nknown badges – at all times. “Don’t panic”, it says."),
    DocumentPage(
        4, "The fee is *always* 50% of the listed price.[1] It was paid from 2019–2020 and the rule"
    ),
    DocumentPage(
        5, "goes over the border of two pages. The committee meets every second Tuesday. It is re-"
    ),
    DocumentPage(6, "markable how the ﬁnal word was co\u00adoperation.\n"),
)
NOTES = (
    DocumentPage(3, "Ann wrote: the fee is always too high.\nSnake_case names stay as\nthey are."),
    DocumentPage(9, "委员会每个星期二开会，\n讨论所有的问题。"),
    DocumentPage(10, "Ｗｉｄｅ letters of №\u00a05."),
    DocumentPage(12, "# Run `make test` first\n- one item here\n- two items there"),
)
CORPUS = Corpus({"handbook": HANDBOOK, "notes": NOTES}, (), lengths={"handbook": 7, "notes": 20})
DEBATE = ("Should the committee be closed for good?", "The proposal: sell the whole thing now.")

Seen = tuple[str, str, str | None, str | None]


def seen(text: str) -> list[Seen]:
    checks = check_quotes(text, CORPUS, DEBATE)
    return [(check.text, check.status, check.cited, check.where) for check in checks]


@pytest.mark.parametrize(
    ("quoted", "where"),
    [
        ("the committee meets every second tuesday", "handbook:1"),
        ("The  committee\nmeets every second Tues-\nday!", "handbook:1"),
        ("(…) Committee meets every SECOND Tuesday, ...", "handbook:1"),
        ("staff shall wear well-known badges", "handbook:2"),
        ("staff shall wear wellknown badges - at all times", "handbook:2"),
        ("badges—at all times", "handbook:2"),
        ("known badges at all times", None),
        ("'Don't panic', it says.", "handbook:2"),
        ("is **always** 50% of", "handbook:4"),
        ("is always 50\\% of the listed", "handbook:4"),
        ("paid from 2019-2020 and the", "handbook:4"),
        ("and the rule goes over the border", "handbook:4"),
        ("It is remarkable how the final word was cooperation", "handbook:5"),
        ("how the final word was", "handbook:6"),
        ("[T]he fee is always too high", "notes:3"),
        ("the listed price.[1] It was paid", "handbook:4"),
        ("price It was paid from", None),
        ("too high ... the fee is always", None),
        ("Ann wrote: the fee ... over the border", None),
        ("art is longer. The committee", "handbook:1"),
        ("art is lo ... and art", None),
        ("mart is long, and art", None),
        ("smart is long, and ar", None),
        ("The fee is sometimes 50% of", None),
        ("Snake_case names stay as they", "notes:3"),
        ("Run make test first", "notes:12"),
        ("wide letters of No 5", "notes:10"),
        ("委员会每个星期二开会，讨论", "notes:9"),
        ("每个星期三开会，讨论", None),
    ],
)  # fmt: skip
def test_finds_a_quote_at_the_page_where_it_starts(quoted: str, where: str | None) -> None:
    # A German pair holds every other mark.
    status = "found" if where else "not_found"
    assert seen(f"They say „{quoted}“ there.") == [(quoted, status, None, where)]


@pytest.mark.parametrize(
    ("quoted", "where"),
    [
        ("The fee ... of the listed price", "handbook:4"),
        ("The fee is […] too high", "notes:3"),
        ("The fee [as such] is always . . . listed price", "handbook:4"),
        ("the committee meet[ing] every second Tuesday", "handbook:1"),
    ],
)
def test_omissions_and_insertions_count_as_altered(quoted: str, where: str) -> None:
    assert seen(f"They say „{quoted}“ there.") == [(quoted, "altered", None, where)]


FOUND = "the committee meets every second Tuesday"
HIT: Seen = (FOUND, "found", None, "handbook:1")


@pytest.mark.parametrize(
    ("text", "checks"),
    [
        (f'Say "{FOUND}".', [HIT]),
        (f"Say “{FOUND}”.", [HIT]),
        (f"Say „{FOUND}” or „{FOUND}“.", [HIT, HIT]),
        (f"Say «{FOUND}» or »{FOUND}«.", [HIT, HIT]),
        (f"Say « {FOUND} ».", [HIT]),
        (f"Say 「{FOUND}」.", [HIT]),
        (f'**"{FOUND}"** ("{FOUND}")', [HIT, HIT]),
        (f"Say '{FOUND}' in single marks, don't they.", [HIT]),
        (f"Say ‘{FOUND}’, ‚{FOUND}‘ or ‚{FOUND}’.", [HIT] * 3),
        (f"Say ‹{FOUND}›, ›{FOUND}‹ or 『{FOUND}』.", [HIT] * 3),
        (f"Say ”{FOUND}”, »{FOUND}» or ’{FOUND}’.", [HIT] * 3),
        (f"Say ``{FOUND}'', then ``{FOUND}''.", [HIT, HIT]),
        (f"Say ＂{FOUND}＂ or &quot;{FOUND}&quot;.", [HIT, HIT]),
        (f"Rock 'n' roll of the '90s, the users' own: '{FOUND}', isn't it", [HIT]),
        ("The users' rights and the workers' rights don't go on for all the '80s'", []),
        ("He said 'the users' own words aren't there' then", [
            ("the users' own words aren't there", "not_found", None, None)]),
        ("He said ‘it doesn’t stand there’ then", [
            ("it doesn’t stand there", "not_found", None, None)]),
        ("'smart' and `smart` and \" smart \"", []),
        (f"- > {FOUND}\n- > {FOUND}\n1. > {FOUND}", [HIT] * 3),
        (f'"{FOUND}\n\n"{FOUND}"', [HIT, HIT]),
        (f"“{FOUND}\n\n“{FOUND}”", [HIT, HIT]),
        ('"No such words\n\nare here" [notes:3]', [
            ("No such words\n\nare here", "not_found", "notes:3", None)]),
        ("“No such words\n\nat\n\nall” [notes:3]", [
            ("No such words\n\nat\n\nall", "not_found", "notes:3", None)]),
        ('"No such words\n\nare here" in the notes', []),
        (f'> They say "{FOUND}" there', [HIT]),
        ('> They invent "no such words here" there', [
            ("no such words here", "not_found", None, None)]),
        ('> Ann wrote: "the fee is always too high"', [
            ("the fee is always too high", "found", None, "notes:3")]),
        ('> Words that nobody wrote, with a "term" inside', [
            ('Words that nobody wrote, with a "term" inside', "not_found", None, None)]),
        (f'> {"Words that nobody wrote. " * 9} "{FOUND}"', [
            (f'{"Words that nobody wrote. " * 9} "{FOUND}"', "not_found", None, None)]),
        (f"Before\n> {FOUND}\nbehind", [HIT]),
        (">the committee meets\n  > every second\n>Tuesday", [
            ("the committee meets\nevery second\nTuesday", "found", None, "handbook:1")]),
        (f"> {FOUND}\n\n> {FOUND}", [HIT, HIT]),
        ("> - one item here\n> - two items there", [
            ("- one item here\n- two items there", "found", None, "notes:12")]),
        (f"> {FOUND}\n> — Handbook", [HIT]),
        (f'A 5" pipe and "{FOUND}" here', [HIT]),
        (f'A lone " mark and "{FOUND}" here', [HIT]),
        ('A 5" pipe that lies beside a 6" pipe', []),
        ('A lone " mark that goes on and on" here', []),
        ('“They say "no such words here" there”', [
            ('They say "no such words here" there', "not_found", None, None)]),
        ('"the "best" option is to sell all"', [
            ('the "best" option is to sell all', "not_found", None, None)]),
        ("“The committee meets every “second” Tuesday and pays a million”", [
            ("The committee meets every “second” Tuesday and pays a million", "not_found", None,
             None)]),
        ("»Outer »inner« words here« and „outer “inner” words too“", [
            ("Outer »inner« words here", "not_found", None, None),
            ("outer “inner” words too", "not_found", None, None)]),
        (f'An "unclosed one and "{FOUND}" here', [HIT]),
        (f'An "unclosed one that goes on\n\nand "{FOUND}" here', [HIT]),
        (f'- an "unclosed one that goes on\n- and "{FOUND}" here', [HIT]),
        (f"An “unclosed one, „another, 「third and «{FOUND}»", [HIT]),
        (f"Home » Page » Part, and «{FOUND}»", [HIT]),
        (f"“Outer words with “{FOUND}", []),
        ('她说"委员会每个星期二开会"了', [("委员会每个星期二开会", "found", None, "notes:9")]),
        (f'```\n"{FOUND}"\n```\n~~~ py\n"{FOUND}"\n~~~\n"{FOUND}"', [HIT]),
        (f'````\n```\n"{FOUND}"\n````\n"{FOUND}"', [HIT]),
        (f'```\n"{FOUND}"', [HIT]),
        (f'~~~ "{FOUND}"\n````py\n"{FOUND}"\n\n```\n"{FOUND}"', [HIT] * 3),
        (f'Code `"{FOUND}"` and ``a ` "{FOUND}"`` is left out', []),
        ('Say "Run `make test` first" now', [("Run `make test` first", "found", None, "notes:12")]),
        ('Three words: "smart is long", seven signs: "每个星期二开会".', []),
        ('Four invented: "no such words here".', [("no such words here", "not_found", None, None)]),
        ('"sell the whole thing"', [("sell the whole thing", "from_debate", None, None)]),
        ('"Sell ... thing now today"', [("Sell ... thing now today", "not_found", None, None)]),
        ('"committee be closed for"', [("committee be closed for", "from_debate", None, None)]),
        ('"sell the whole" [notes:3]', [("sell the whole", "not_found", "notes:3", None)]),
        ("", []),
        ('"" “” «» > ""', []),
    ],
)  # fmt: skip
def test_what_counts_as_a_quotation(text: str, checks: list[Seen]) -> None:
    assert seen(text) == checks


@pytest.mark.parametrize(
    ("text", "checks"),
    [
        ('"smart" [handbook:1]', [("smart", "found", "handbook:1", "handbook:1")]),
        ('"smarter" [handbook:1].', [("smarter", "not_found", "handbook:1", None)]),
        (f'"{FOUND}" [handbook:5]', [(FOUND, "found", "handbook:5", "handbook:5")]),
        (f'"{FOUND}" [handbook:2]', [(FOUND, "found", "handbook:2", "handbook:1")]),
        (f'"{FOUND}" [notes:3]', [(FOUND, "found", "notes:3", "handbook:1")]),
        (f'"{FOUND}" [ghost:3]', [
            (FOUND, "found", "ghost:3", "handbook:1"),
            ("[ghost:3]", "not_found", "ghost:3", None)]),
        (f'"{FOUND}" [ghost:3; Handbook: p. 5, 99]', [
            (FOUND, "found", "handbook:5", "handbook:5"),
            ("[ghost:3]", "not_found", "ghost:3", None),
            ("[Handbook:99]", "not_found", "handbook:99", None)]),
        ('"no such" [ghost:3]', [
            ("no such", "not_found", "ghost:3", None),
            ("[ghost:3]", "not_found", "ghost:3", None)]),
        (f'> "{FOUND}" [ghost:3] and [ghost:4]', [
            (FOUND, "found", "ghost:3", "handbook:1"),
            ("[ghost:3]", "not_found", "ghost:3", None),
            ("[ghost:4]", "not_found", "ghost:4", None)]),
        (f'"{FOUND}" [handbook:2; 5]', [(FOUND, "found", "handbook:5", "handbook:5")]),
        (f'"{FOUND}" [handbook:4-6]', [(FOUND, "found", "handbook:5", "handbook:5")]),
        (f'"{FOUND}" [handbook:5-9]', [
            (FOUND, "found", "handbook:5", "handbook:1"),
            ("[handbook:5-9]", "not_found", "handbook:5", None)]),
        ('"and the rule goes over" [handbook:5]', [
            ("and the rule goes over", "found", "handbook:4", "handbook:4")]),
        ('" smart " [handbook:1] and "smart " [handbook:1]', [
            ("smart", "found", "handbook:1", "handbook:1")] * 2),
        ("`smart` [handbook:1], 'smart' [handbook:1], ‘smart’ [handbook:1]", [
            ("smart", "found", "handbook:1", "handbook:1")] * 3),
        ('"smart" [Note: 3], [Figure: 2; 3], [Table: 4], [10:30], [fig: 1]', []),
        ("[Score: 7], [Confidence: 80], [Claim:3], [Objection: 2; 4], [Severity: 1]", []),
        ("See [notes:99](https://x)", [("[notes:99]", "not_found", "notes:99", None)]),
        (f'("{FOUND}.") [Handbook: p. 5]', [(f"{FOUND}.", "found", "handbook:5", "handbook:5")]),
        (f'"{FOUND}"**, [handbook:05, notes:3]', [(FOUND, "found", "handbook:5", "handbook:5")]),
        (f'"{FOUND}" [handbook:5; 6]', [(FOUND, "found", "handbook:5", "handbook:5")]),
        (f'"{FOUND}" [handbook:5-6]', [(FOUND, "found", "handbook:5", "handbook:5")]),
        (f'"{FOUND} [handbook:5]."', [(FOUND, "found", "handbook:5", "handbook:5")]),
        (f"> {FOUND} [handbook:5]", [(FOUND, "found", "handbook:5", "handbook:5")]),
        (f"> {FOUND}\n> — Handbook [handbook:5]", [(FOUND, "found", "handbook:5", "handbook:5")]),
        (f"> {FOUND}\n\n[handbook:5] says so", [(FOUND, "found", "handbook:5", "handbook:5")]),
        (f'"{FOUND}" is in [handbook:5]', [HIT]),
        ('[handbook:1] "smart"', [("smart", "found", "handbook:1", "handbook:1")]),
        (f'As [notes:3]: “{FOUND}”.', [(FOUND, "found", "notes:3", "handbook:1")]),
        ('"smart" [handbook:1] "is long"', [("smart", "found", "handbook:1", "handbook:1")]),
        ('It is so [notes:3]. "smart"', []),
        ('As [handbook:1] says, "not so smart".', [("not so smart", "not_found", None, None)]),
        ('[handbook:1] says: "is long".', [("is long", "found", None, "handbook:1")]),
        ('"not there" as per [notes:3]', [("not there", "not_found", None, None)]),
        ('You say "sell the whole", but [notes:3] does not.', [
            ("sell the whole", "from_debate", None, None)]),
        ('A "quick win". And [notes:3] is "smart" there.', []),
        ('"smart" [handbook:p1], "smart" [Handbook, p. 1]', [
            ("smart", "found", "handbook:1", "handbook:1")] * 2),
        ('"smart" [Smith, p. 1], "no such words at all" [Smith, p. 1]', [
            ("no such words at all", "not_found", None, None)]),
        ('"names stay" [notes:4]', [("names stay", "found", "notes:3", "notes:3")]),
        ("As [handbook:7], [handbook: page 3] and [notes:4, 20] say", []),
        ("As [handbook:8] says", [("[handbook:8]", "not_found", "handbook:8", None)]),
        ("As [Notes:0] says", [("[Notes:0]", "not_found", "notes:0", None)]),
        ("See [handbook:1; 99]", [("[handbook:99]", "not_found", "handbook:99", None)]),
        ("See [handbook:1, ghost: p. 2]", [
            ("[ghost: p. 2]", "not_found", "ghost:2", None)]),
        ("At [10:30], a [link:1](https://x), `[ghost:1]`, [a], [1] and [x: y]", []),
        ('"..." [ghost:1] first, then "smart" [handbook:1]', [
            ("[ghost:1]", "not_found", "ghost:1", None),
            ("smart", "found", "handbook:1", "handbook:1")]),
    ],
)  # fmt: skip
def test_checks_citations(text: str, checks: list[Seen]) -> None:
    assert seen(text) == checks


def found_in(document: str, text: str) -> list[tuple[str, str | None]]:
    corpus = Corpus({"doc": (DocumentPage(1, document),)}, (), lengths={"doc": 9})
    return [(check.status, check.reads) for check in check_quotes(text, corpus, [])]


def status_in(document: str, quoted: str) -> str:
    ((status, _),) = found_in(document, f"„{quoted}“ [doc:1]")
    return status


def test_the_label_is_kept_as_it_was_written() -> None:
    (held,) = check_quotes(f'"{FOUND}" [Handbook: p. 4-6]', CORPUS, [])
    (astray,) = check_quotes(f'"{FOUND}" [notes:3]', CORPUS, [])
    assert (held.cited, held.written, held.where) == (
        "handbook:5",
        "[Handbook: p. 4-6]",
        "handbook:5",
    )
    assert (astray.cited, astray.written, astray.where) == ("notes:3", "[notes:3]", "handbook:1")


def test_an_omission_must_be_short_and_within_one_document() -> None:
    def status(filler: int, quoted: str) -> str:
        return status_in(f"first half of it {'x' * filler} second half of it", quoted)

    for quoted in ("first half ... second half", "first ... second half", "first half … second"):
        assert status(280, quoted) == "altered"
        assert status(300, quoted) == "not_found"
    halves = Corpus(
        {"a": (DocumentPage(1, "first half of it"),), "b": (DocumentPage(1, "second half of it"),)},
        (),
    )
    (check,) = check_quotes('"first half ... second half"', halves, [])
    assert check.status == "not_found"


def test_matches_a_later_occurrence_of_a_part() -> None:
    near = "alpha one " + "beta two " + "x " * 130 + "beta two " + "y " * 130 + "gamma three"
    corpus = Corpus({"a": (DocumentPage(1, "alpha one" + " far" * 200), DocumentPage(2, near))}, ())
    (check,) = check_quotes('"alpha one ... beta two ... gamma three"', corpus, [])
    assert (check.status, check.where) == ("altered", "a:2")


def test_every_part_must_be_close_to_the_one_before() -> None:
    def far(length: int) -> str:
        return "z" * length

    broken = f"a a b b c c {far(260)} b b {far(50)} d d {far(230)} c c"
    assert status_in(broken, "a a ... b b ... c c ... d d") == "not_found"
    assert status_in(broken, "a a ... b b ... d d") == "altered"


UNSAFE = "The drug is unsafe for adults."


@pytest.mark.parametrize(
    ("document", "quoted", "reads"),
    [
        (UNSAFE, "The drug is [very safe] for adults", "The drug is unsafe for adults"),
        (UNSAFE, "The drug is [very]safe for adults", "The drug is unsafe for adults"),
        (UNSAFE, "The drug is ... [very safe] for adults", "The drug is unsafe for adults"),
        (UNSAFE, "[the drug is safe]", None),
        (UNSAFE, "The [price of the new] drug", None),
        (UNSAFE, "The drug ... for adults", "The drug is unsafe for adults"),
        (UNSAFE, "The [new] drug is unsafe", "The drug is unsafe"),
        (UNSAFE, "The drug is [not] unsafe", "The drug is unsafe"),
        (UNSAFE, "The drug is unsafe (emphasis on safe for all)", None),
        (UNSAFE, "The drug is unsafe [sic] for adults", "The drug is unsafe for adults"),
        ("The drug is not safe", "The drug is ... safe", "The drug is not safe"),
        ("It is not  safe\nfor\nALL here", "is ... safe for all", "is not safe for ALL"),
        ("It cost 5 dollars then", "cost [500] dollars", "cost 5 dollars"),
        ("Then he “went” *home*.", "Then [Bob] 'went' home", "Then he “went” home"),
        ("Then he did. They went home", "Then he did ... [they] went", "Then he did. They went"),
        ("They meet here", "They meet[ing] here", "They meet here"),
        ("So they meets", "So they meet[ing]", "So they meets"),
        ("They can do it", "They can[not] do it", "They can do it"),
        ("It is harmless now", "It is harm[ful] now", "It is harmless now"),
        ("All women came", "All wom[a]n came", "All women came"),
        ("All workmen came", "All wom[a]n came", None),
        ("All women went and a man came", "All wom[a]n came", None),
        ("Revenue from the online store and its many partners fell", "Revenue ... fell",
         "Revenue from the online store and its many partners fell"),
        ("Oﬃce İzmir, A&amp;B … to the end", "office ... B ... the end",
         "Office İzmir, A&B ... to the end"),
        ("x " * 40 + "one two " + "word " * 50 + "three four", "one two ... three four",
         "one two " + "word " * 50 + "three four"),
    ],
)  # fmt: skip
def test_shows_the_original_wording_of_an_altered_quote(
    document: str, quoted: str, reads: str | None
) -> None:
    status = "altered" if reads else "not_found"
    assert found_in(document, f"„{quoted}“ [doc:1]") == [(status, reads)]


def test_truncates_a_long_original_wording_at_a_word() -> None:
    words = [f"word{nth} two {'x' * 250}" for nth in range(4)]
    ((_, reads),) = found_in(" ".join(words), f"“{' ... '.join(each[:9] for each in words)}”")
    assert reads == f"{words[0]} word1 two…"


def test_the_original_wording_may_span_pages() -> None:
    corpus = Corpus(
        {"a": (DocumentPage(1, "Head. The *rule* goes re-"), DocumentPage(2, "ally “on” here."))},
        (),
    )
    (check,) = check_quotes("„The rule ... 'on' here“", corpus, [])
    assert check.reads == "The rule goes re- ally “on” here"


def test_brackets_and_ellipses_in_the_document_are_not_alterations() -> None:
    assert found_in("He go [sic] there ... and then", '"He go [sic] there ... and"') == [
        ("found", None)
    ]
    assert found_in("then the man came home", '"[T]he man came home ..."') == [("found", None)]


@pytest.mark.parametrize(
    ("document", "quoted"),
    [
        ("the growth rate was 3.55", "the growth rate was 3"),
        ("a total of 12,500,000 men", "a total of 12,500"),
        ("about $1.5 million", "5 million"),
        ("about .5 million", "5 million"),
        ("it was -5 percent", "5 percent"),
        ("it was –5 percent", "5 percent"),
        ("it was 5 percent", "-5 percent"),
        ("it is non-toxic", "toxic"),
        ("it is toxic-free", "is toxic"),
        ("in the years 2019-2020", "in the years 2019"),
        ("for COVID-19 alone", "for covid"),
        ("about 10⁶ men", "about 106 men"),
        ("about 10⁶ men", "about 10"),
        ("CO₂ is there", "CO2 is there"),
        ("for 2½ hours", "for 21⁄2 hours"),
        ("for 2½ hours", "for 2"),
        ("they resign", "they re-sign"),
        ("they re-sign", "they resign"),
        ("so we can't do it", "so we can"),
        ("It grew by 5 units", "It grew by 5%"),
        ("It grew by 5% a year", "It grew by 5"),
        ("€500 million in fines", "$500 million in fines"),
        ("a fine of 500 € for all", "a fine of 500 $"),
        ("≥ 5 million users", "≤ 5 million users"),
        ("had < 5 million users", "> 5 million users"),
        ("It cost 40 percent of the budget", "It cost 40%"),
        ("2**10 bytes of it", "210 bytes of it"),
        ("2*3 and 1_5", "23 and 15"),
        ("about 50 metres² of land", "about 50 metres of land"),
    ],
)  # fmt: skip
def test_does_not_match_parts_of_words_or_numbers(document: str, quoted: str) -> None:
    assert status_in(document, quoted) == "not_found"


@pytest.mark.parametrize(
    ("document", "quoted"),
    [
        ("it was −5 percent", "was -5 percent"),
        ("it was −5 percent", "–5 percent"),
        ("rates of 3.5, 4.5 and more.", "of 3.5, 4.5"),
        ("they re-\nsign it", "they resign it"),
        ("they re-\nsign it", "they re-sign it"),
        ("a well-\nknown state-of-\nthe-art re-\nmark", "a well-known state-of-the-art remark"),
        ("pre-\nand post-war", "pre- and post-war"),
        ("the Paris–Bonn line", "the Paris-Bonn line"),
        ("about 10⁶ men", "about 10^6 men"),
        ("read [the *guide*](http://x.y/z), [too][1]", "read the guide, too"),
        ("a point[^2] here.[3] And¹ there", "a point here. And¹ there"),
        ("that others made¹ there", "that others made there"),
        ("it grew by 12%[3] and (then)[4] fell", "it grew by 12% and (then) fell"),
        ("> one line\n> another line", "one line another line"),
        ("A&nbsp;&amp;&nbsp;B go", "A & B go"),
        ("10<sup>6</sup> <b>men</b>, H<sub>2</sub>O", "10⁶ men, H₂O"),
        ("and/\nor at http://a.b/\nc there", "and/or at http://a.b/c there"),
        ("Il dit\u00a0: « vrai\u202f! » à 50\u00a0%", "Il dit: «vrai!» à 50%"),
        ("sagte »Wort« dann", "sagte 'Wort' dann"),
        ("İstanbul ve Diyarbakır", "istanbul ve DIYARBAKIR"),
        ("كَتَبَ الوَلَدُ", "كتب الولد"),
        ("كتب الولد", "كَتَبَ الوَلَدُ"),
        ("they are all gone", "they are *all* gone (emphasis added)"),
        ("they are all gone", "they are all gone [my emphasis]"),
        ("they are ~~all~~ gone", "they are all gone"),
        ("≥ 5 million users, 500 €", "≥5 million users, 500€"),
        ("a fine of €500 million", "500 million"),
        ("2**10 bytes and 1_5", "2**10 bytes and 1_5"),
        ("it has 50 metres²", "it has 50 metres²"),
        ("L’homme est né libre", "homme est né libre"),
    ],
)  # fmt: skip
def test_ignores_differences_in_typography_and_markup(document: str, quoted: str) -> None:
    assert found_in(document, f"„{quoted}“ [doc:1]") == [("found", None)]


SOLD = "We must sell the whole thing now."


@pytest.mark.parametrize(
    ("quoted", "disproved", "status"),
    [
        ("sell the whole thing", [], "from_debate"),
        ("sell the whole thing", ["Sell the whole thing now"], "not_found"),
        ("We must sell the whole thing", ["sell the WHOLE"], "not_found"),
        ("We must sell the ... thing", ["must sell ... thing"], "not_found"),
        ("sell the whole thing", ["buy the whole thing", "[ghost:1]", "sell"], "from_debate"),
    ],
)  # fmt: skip
def test_a_disproved_quote_does_not_count_as_a_quote_of_the_debate(
    quoted: str, disproved: list[str], status: str
) -> None:
    (check,) = check_quotes(f"„{quoted}“", CORPUS, [SOLD], disproved)
    assert check.status == status


def test_a_disproved_quote_is_still_found_in_the_documents() -> None:
    (check,) = check_quotes(f'"{FOUND}"', CORPUS, [], [FOUND])
    assert check.status == "found"


def test_finds_a_table_row_as_written_in_the_file() -> None:
    pages = (
        DocumentPage(2, "name: Ann; age: 42", "name,age\nAnn,42"),
        DocumentPage(3, "name: Bo", '"Bo, B.",7'),
    )
    corpus = Corpus({"a": pages}, (), lengths={"a": 3})
    reply = """„name,age“ [a:1] „Bo, B.,7“ [a:3] „name: Ann; age: 42“ [a:2] „Ann,43“ [a:2]
    „"Bo, B.",7“ [a:2]"""
    seen = [(check.status, check.cited, check.where) for check in check_quotes(reply, corpus, [])]
    assert seen == [
        ("found", "a:2", "a:2"),
        ("not_found", "a:3", None),
        ("found", "a:2", "a:2"),
        ("not_found", "a:2", None),
        ("found", "a:2", "a:3"),
    ]


def test_matches_a_sentence_across_an_empty_page() -> None:
    corpus = Corpus(
        {
            "a": (
                DocumentPage(1, "the one half"),
                DocumentPage(2, "***"),
                DocumentPage(3, "and the other"),
            )
        },
        (),
    )
    (check,) = check_quotes('"one half and the other"', corpus, [])
    assert check == QuoteCheck(text="one half and the other", status="found", where="a:1")


WORD = st.text("abcdefghijäöüéñ", min_size=1, max_size=8)
SPACE = st.sampled_from([" ", "  ", "\n", "\t", "\u00a0", " \n "])
CASES: list[Callable[[str], str]] = [str, str.upper, str.title]
STYLES = ['"{}"', "“{}”", "„{}“", "«{}»", "»{}«", "「{}」", "> {}"]


@given(st.data())
def test_finds_any_sequence_of_words_of_a_document(data: st.DataObject) -> None:
    words = data.draw(st.lists(WORD, min_size=4, max_size=60))
    signed = [word + data.draw(st.sampled_from(["", "", ",", ".", "-x", "’s"])) for word in words]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(words)), max_size=4)))
    pages = [signed[start:end] for start, end in zip([0, *cuts], [*cuts, len(words)], strict=True)]
    corpus = Corpus(
        {
            "a": tuple(
                DocumentPage(nth, " ".join(page)) for nth, page in enumerate(pages, 1) if page
            )
        },
        (),
    )
    start = data.draw(st.integers(0, len(words) - 4))
    taken = signed[start : data.draw(st.integers(start + 4, len(words)))]
    changed = [data.draw(st.sampled_from(CASES))(word) for word in taken]
    style = data.draw(st.sampled_from(STYLES))
    gap = SPACE if style[0] != ">" else st.sampled_from([" ", "  ", "\t", "\n> "])
    quoted = "".join(word + data.draw(gap) for word in changed[:-1]) + changed[-1]
    (check,) = check_quotes(f"Look:\n{style.format(quoted)}", corpus, [])
    assert check.status == "found"
    if len(taken) >= 6:
        (check,) = check_quotes(f"„{' '.join(taken[:2])} ... {' '.join(taken[-2:])}“", corpus, [])
        if check.status == "altered":
            plain = " ".join(" ".join(page) for page in pages if page)
            assert check.reads is not None
            assert check.reads.removesuffix("…") in plain


MARKUP = st.text("ab1 \n\"“”„«»「」>`~*_[]:,;.…-\\\u00ad字é'‘’&<^²½−–/(İ\ue001", max_size=200)


@given(MARKUP | st.text(max_size=200), MARKUP | st.text(max_size=200))
@example("> \n>", "> ")
def test_no_text_raises(text: str, source: str) -> None:
    corpus = Corpus(
        {"a": (DocumentPage(1, source), DocumentPage(2, source))} if source else {"a": ()}, ()
    )
    for check in check_quotes(f'{text} "{source}" [a:1]', corpus, [source], [text]):
        assert (check.where is None) == (check.status not in {"found", "altered"})
        assert check.text


@at_once
@pytest.mark.parametrize(
    "piece",
    ['"', "[", "> \n", ">", "> a b c d\n\n", "“", "„", "»a", "«a", "`", "`` ", "```\n", "-", "- \n",
     "'", "'a", "a' ", "‘a", "’ ", "``a", "``a''", "&quot;", "&", "<a ", "[a](", "[^", "```a\n",
     "~~~\n", '"a\n\n', "“a\n\n", '" a " [a:1]', "`a` [a:1]", "- > a\n", "meet[ing] ", "[T]he ",
     "a ... ", "-\n", "²", "İ", "/ ", "^1", "[a:1,", '"a b c d" [a:1] ', "[a:1] ", '"a', "...", "a",
     " ", "\n", "字", "[a] ", "*", "a-", "1" + "_" * 39_998 + "1"],
)  # fmt: skip
def test_hostile_text_does_not_hang(piece: str) -> None:
    text = piece * (40_000 // len(piece))
    corpus = Corpus({"a": (DocumentPage(1, "Some words that stand here."),)}, ())
    check_quotes(text, corpus, ["Some other words."])
    check_quotes(f'"{text}" [a:1]', corpus, ["Some other words."])
    check_quotes("> " + text, corpus, ["Some other words."])


@at_once
def test_omissions_in_monotonous_text_do_not_hang() -> None:
    corpus = Corpus({"a": (DocumentPage(1, "a b " * 500_000),)}, ())
    check_quotes('"a ... b ... a ... c"' + '"a [b] a ... b a ... a a"' * 10, corpus, [])


@at_once
def test_many_omissions_in_text_that_nearly_fits_do_not_hang() -> None:
    corpus = Corpus({"a": (DocumentPage(1, "end here " + "a a a b " * 4_000),)}, ())
    (check,) = check_quotes(f'"{"a [...] " * 8}a a a b a [...] end"', corpus, [])
    assert check.status == "not_found"


@at_once
def test_many_quotes_against_much_text_do_not_hang() -> None:
    dice = random.Random(7)  # noqa: S311 - no secret
    vocabulary = [
        "".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9))) for _ in range(20_000)
    ]
    weights = [1 / nth for nth in range(1, 20_001)]
    pages = [
        DocumentPage(nth, " ".join(dice.choices(vocabulary, weights, k=1000)))
        for nth in range(1, 1201)
    ]
    corpus = Corpus({"a": tuple(pages[:600]), "b": tuple(pages[600:])}, ())
    check_quotes('"so that it is indexed"', corpus, [])
    true = [" ".join(dice.choice(pages).text.split()[40:52]) for _ in range(100)]
    false = [" ".join(dice.choices(vocabulary, weights, k=12)) for _ in range(100)]
    reply = "\n\n".join(f"It says “{words}”." for words in true + false)
    checks = check_quotes(reply, corpus, [])
    assert [check.status for check in checks] == ["found"] * 100 + ["not_found"] * 100
