"""Error messages as API clients receive them."""

import pytest

from contend.graph.errors import BadInput
from contend.service.errors import Refused, refusing_bad_input


@pytest.mark.parametrize(
    ("raised", "shown"),
    [
        ("max_rounds must be a number, not x (--set).", "max_rounds must be a number, not x."),
        (
            "Choose a model with --model or --set judge_model=PROVIDER:NAME.",
            "Choose a model with `model` or the setting judge_model.",
        ),
        (
            "Set it with --set 'prices={\"m\": [IN, OUT]}' in dollars, or use --budget.",
            "Set it with the setting prices in dollars, or use `budget`.",
        ),
        ("Give 2; add another --seat NAME=MODEL", "Give 2; add another entry in `seats`"),
        ("No key sk-abcdefghijklmnop01234567 works.", "No key *** works."),
    ],
)
def test_api_errors_name_settings_instead_of_cli_options(raised: str, shown: str) -> None:
    with pytest.raises(Refused) as refused, refusing_bad_input():
        raise BadInput(raised)
    assert refused.value.body.detail == shown
