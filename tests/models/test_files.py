"""Files that are read and written."""

import pytest
import yaml

from contend.models.files import parse_yaml

BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\ne: [*d, *d]"


def test_yaml_is_parsed() -> None:
    assert parse_yaml("a: [1, two]") == {"a": [1, "two"]}


@pytest.mark.parametrize("text", [BOMB, "a: &a [*a]", "a: &a 1\nb: *a", "a: ["])
def test_yaml_that_grows_or_refers_to_itself_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        parse_yaml(text)
