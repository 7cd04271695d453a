"""The token estimate used for all models."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from contend.models.tokens import count_tokens
from tests.cli.support import ROOT

FORMAL = """
Honourable moderator, distinguished audience: the municipality should publish every significant
administrative decision together with its documentation. Transparency disciplines authorities.
Officials who anticipate independent examination prepare their recommendations more carefully,
acknowledge uncertainty and distinguish established evidence from political preference. Comparable
obligations already govern procurement, environmental assessment and pharmaceutical regulation, and
nowhere has responsible administration collapsed because citizens could read the correspondence.

My opponent will presumably emphasise confidentiality. Personal information certainly deserves
protection, and commercial negotiations occasionally require temporary discretion. Those exceptions
are legitimate, limited and administratively manageable; they cannot justify general secrecy. The
alternative, discretionary disclosure, systematically benefits experienced institutions, because
individual applicants seldom possess the professional assistance that complicated procedures demand.

Consider finally the accumulated consequences for confidence. Residents increasingly suspect that
influential organisations determine infrastructure, education and healthcare expenditure privately.
Some suspicions are undoubtedly exaggerated, but authorities themselves cultivate them whenever
explanations remain inaccessible. Publication substitutes verification for speculation. It permits
journalists, researchers and competing municipalities to identify successful approaches, reproduce
them and recognise expensive mistakes considerably earlier. I therefore respectfully recommend that
documentation become the standard, confidentiality the exception, and every exception accompanied
by a comprehensible justification, an appropriate expiration date and an independent appeal. Anyone
opposing this proposition should demonstrate, specifically and empirically, which administrative
responsibilities publication has damaged, and whether that damage outweighs these considerable and
repeatedly documented advantages.
"""


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("   \n ", 0),
        ("One two three.", 4),
        ("internationalization", 2),
        ("In 1820, 3.5 %", 8),
        ("开源更安全", 5),
        ("word " * 300, 300),
    ],
)
def test_counts_tokens(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


def test_formal_prose_of_the_requested_length_fits_the_token_limit() -> None:
    """Prompts ask for at most 300 tokens, about 225 words; long words must fit too."""
    assert len(FORMAL.split()) >= 223
    assert count_tokens(FORMAL) <= 300


def test_estimate_is_within_ten_percent_of_a_real_tokenizer(embedding_weights: list[Path]) -> None:
    vocabulary = Tokenizer.from_file(str(next(p for p in embedding_weights if p.suffix == ".json")))
    vocabulary.no_truncation()
    vocabulary.no_padding()
    plain = [p.read_text("utf-8") for p in sorted((ROOT / "retrieval/templates").glob("*.md"))[:12]]
    for text in [*plain, FORMAL]:
        assert count_tokens(text) == pytest.approx(len(vocabulary.encode(text).ids), rel=0.1), text
