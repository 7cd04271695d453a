from datetime import date

import pytest

from contend.cli.view.format import estimate_words
from contend.debates.estimate import Estimate, Range

READ = date(2026, 11, 18)


@pytest.mark.parametrize(
    ("cost", "today", "words"),
    [
        ((0.021, 0.049), READ, "$0.02 to $0.05 (prices from 2026-11-18)"),
        ((0.0004, 0.0051), READ, "under $0.001 to $0.005 (prices from 2026-11-18)"),
        ((1.5, 1234.5), date(2027, 5, 17), "$1.50 to $1,234.50 (prices from 2026-11-18)"),
        (
            (0.02, 0.021),
            date(2027, 5, 18),
            "$0.02 (prices from 2026-11-18, over 180 days old; "
            "replace them with the setting prices)",
        ),
    ],
)
def test_an_estimate_has_the_date_of_its_prices(cost: Range, today: date, words: str) -> None:
    found = Estimate((8, 12), (9_400, 21_000), cost, prices_read=READ)
    said = f"8 to 12 calls, about 9k to 21k tokens, {words}"
    assert estimate_words(found, today) == said


def test_an_estimate_says_what_is_free_or_unknown() -> None:
    free, unknown = (
        Estimate((4, 4), (800, 900), (0, 0)),
        Estimate((4, 4), (800, 900), None, ("a:b",)),
    )
    assert estimate_words(free, READ) == "4 calls, about 800 to 900 tokens, free (local)"
    assert estimate_words(unknown, READ).endswith("cost unknown (no price for a:b)")
