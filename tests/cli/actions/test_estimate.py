"""`contend estimate` prints low, likely and high, and starts nothing."""

from tests.cli.support import ASK, Command
from tests.support.model_server import ModelServer

PRICES = ["--set", 'prices={"openai:m": [1, 2]}']
ESTIMATE = ["estimate", *ASK[1:], *PRICES]


def test_an_estimate_is_a_table(contend: Command, models: ModelServer) -> None:
    ended = contend.here(*ESTIMATE)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "           low  likely   high",
        " calls       4       5      6",
        "tokens      6k     11k    20k",
        "  cost  $0.007   $0.01  $0.02",
        "No past debate is similar, so `likely` is the midpoint.",
        "All models chosen by you.",
    ]
    assert (models.calls, contend.home.exists()) == ([], False)


def test_likely_figures_come_from_past_debates(contend: Command, models: ModelServer) -> None:
    assert contend.here(*ASK).code == 0
    made = len(models.calls)
    found = contend.here(*ESTIMATE, "--json").json["estimate"]
    (debate,) = contend.here("list", "--json").json
    usage = contend.here("show", debate["id"], "--json").json["usage"]
    likely = found["likely"]
    assert (likely["calls"], likely["debates"]) == (made, 1)
    assert abs(likely["tokens"] - usage["input_tokens"] - usage["output_tokens"]) <= made
    assert "`likely` is the median of 1 past debate." in contend.here(*ESTIMATE).out


def test_an_estimate_refuses_what_a_debate_would_refuse(contend: Command) -> None:
    missing = contend.here("estimate", "-m", "openai:m")
    assert (missing.code, "QUESTION" in missing.err) == (2, True)
    budget = contend.here(*ESTIMATE, "--budget", "10")
    assert (budget.code, "does not pay for one call" in budget.err) == (2, True)


def test_an_estimate_needs_no_key(contend: Command, models: ModelServer) -> None:
    contend.env.pop("OPENAI_API_KEY", None)
    assert contend.here(*ASK, "--dry-run").code == 2
    assert "calls" in contend.here(*ESTIMATE).out
    assert models.calls == []


def test_an_estimate_names_the_budget(contend: Command) -> None:
    said = contend.here(*ESTIMATE, "--budget", "15000").out
    assert "Its budget is 15,000 tokens, which may end it earlier." in said
    assert "Its budget is 90,000 tokens." in contend.here(*ESTIMATE, "--budget", "90000").out
