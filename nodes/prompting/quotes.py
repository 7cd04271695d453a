from contend.graph.values import QuoteCheck


def is_checked(quote: QuoteCheck) -> bool:
    return quote.status != "from_debate"


def quote_line(quote: QuoteCheck, by: str = "") -> str:
    return f"{_verdict(quote)}{by}: {_line(quote.text)}"


def _verdict(quote: QuoteCheck) -> str:
    verdict = "ALTERED from" if quote.status == "altered" else "FOUND at"
    where = f"{verdict} [{quote.where}]" if quote.where else "NOT FOUND in the documents"
    cited = f", cited as [{quote.cited}]" if quote.cited and quote.cited != quote.where else ""
    reads = f", where it reads in full {_line(quote.reads)}" if quote.reads else ""
    return f"{where}{cited}{reads}"


def _line(text: str) -> str:
    return f"“{' '.join(text.split())}”"
