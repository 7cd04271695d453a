"""What speakers are told of quotes that were held against the documents."""

from contend.graph.values import QuoteCheck


def is_checked(quote: QuoteCheck) -> bool:
    """Whether it is a quote from the documents; one from the debate itself needs no check."""
    return quote.status != "from_debate"


def quote_line(quote: QuoteCheck, by: str = "") -> str:
    """One quote and whether it stands there, on one line; `by` says whose it is."""
    return f"{_verdict(quote)}{by}: {_line(quote.text)}"


def _verdict(quote: QuoteCheck) -> str:
    verdict = "ALTERED from" if quote.status == "altered" else "FOUND at"
    where = f"{verdict} [{quote.where}]" if quote.where else "NOT FOUND in the documents"
    cited = f", cited as [{quote.cited}]" if quote.cited and quote.cited != quote.where else ""
    reads = f", where it reads in full {_line(quote.reads)}" if quote.reads else ""
    return f"{where}{cited}{reads}"


def _line(text: str) -> str:
    """A speaker's words on one line: on lines of their own they could pose as verdicts."""
    return f"“{' '.join(text.split())}”"
