import json
import math
from collections.abc import Iterator
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from contend.cli.actions.forecast_request import ForecastOptions, due_notice, time_notice
from contend.cli.view.console import print_hanging
from contend.cli.view.forecast import print_forecast, round_words
from contend.debates.forecasts import read_request, with_due
from contend.graph.forecast_contract.terms import ROLES
from contend.graph.settings import AdversarialSettings, DebateSettings, ForecastSettings
from contend.models.providers.weights import SMALLEST
from contend.nodes.forecast.numbers import fitted_factor
from tests.cli.support import Command
from tests.graph.test_forecast_contract import REFUSED as REFUSED_REQUESTS
from tests.graph.test_forecast_contract import REQUEST
from tests.support.forecasting import OUTCOMES, QUESTION, YES, forecasters
from tests.support.forecasting import request as asked_of
from tests.support.model_server import ModelServer

ASKING = "contend.cli.actions.forecast_request"
ASK = ["ask", QUESTION, "-p", "forecast", "-m", "openai:m"]
NAMED = ["--outcome", "yes: It opens", "--outcome", "no: It does not"]


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(forecasters(), models=["m", "other"]) as running:
        yield running


def test_a_forecast_with_named_outcomes(contend: Command, models: ModelServer) -> None:
    ended = contend.here(*ASK, *NAMED, "--due", "2027-05-01", "--json")
    assert ended.code == 0
    record = ended.json
    assert len(models.calls) == 31
    forecast = record["forecast"]
    assert forecast["debate_id"] == record["id"]
    assert forecast["probability_distribution"][0]["probability"] == pytest.approx(0.66)
    assert forecast["report"]["gaps"] == []
    context = record["request"]["prediction_context"]
    assert [(o["id"], o["label"]) for o in context["outcomes"]] == [
        ("yes", "It opens"),
        ("no", "It does not"),
    ]
    assert context["data_summary"]["timeframe"]["end"] == "2027-05-01"
    assert record["request"]["task_id"].startswith("ask-")


def test_terminal_shows_the_whole_forecast(contend: Command) -> None:
    ended = contend.here(*ASK, *NAMED)
    assert ended.code == 0
    said = " ".join(ended.out.split())
    for text in (
        "forecast · 3 rounds",
        "The pessimist argues in round 2.",
        "Scores of the opening: optimist 0.62,",
        "The panel is moving toward yes and away from no.",
        "The rounds ended: all 3 rounds were held.",
        "It will probably open.",
        "Outcome Forecast Verdict Mean Optim Pessi Contr Histo Judge",
        "yes: It opens 66% 70% 60% 80% 40% 50% 60% 70%",
        "Consensus 0.71 of 1",
        "Pool mean log-odds: yes 61%, no 39%",
        "100% of 15 scored above 0.4 (goal: 80%)",
        "Precedent The north bridge, 1998-04: opened late",
        "OUTCOME once the outcome is known",
    ):
        assert text in said, text
    assert "missing:" not in said
    assert "Objections" not in said
    assert "Templates" not in said
    assert "Strongest" not in said
    assert said.index("─ Forecast ─") < said.index("─ Done ─")


def test_forecast_wraps_at_words_on_a_narrow_terminal(contend: Command) -> None:
    record = contend.here(*ASK, *NAMED, "--json", "-q").json
    written = StringIO()
    screen = Console(file=written, width=60, force_terminal=True, color_system=None)
    labels = {"yes": "yes: It opens to the public in spring", "no": "no: It does not"}
    print_forecast(screen, record["forecast"], labels)
    lines = written.getvalue().splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert any(line.split()[-3:] == ["66%", "70%", "60%"] for line in lines)
    assert any("yes: It opens to the public" in line for line in lines)
    said = " ".join(written.getvalue().replace("\u00a0", " ").split())
    assert "Roles yes: optimist 80%, pessimist 40%, contrarian 50%, historian 60%, judge" in said
    at = next(n for n, line in enumerate(lines) if line.startswith("Roles"))
    assert lines[at + 1].startswith(" " * 14)


def test_print_hanging_wraps_at_words_with_an_indent() -> None:
    written = StringIO()
    screen = Console(file=written, width=30, force_terminal=True, color_system=None)
    print_hanging(screen, "a1b2c3d4  2027-05-01  Will the bridge open before summer?", hang=10)
    words = ["2027-05-01", "Will", "the", "bridge", "open", "before", "summer?"]
    assert written.getvalue().replace("\u00a0", " ").split() == ["a1b2c3d4", *words]
    assert all(line.startswith(" " * 10) for line in written.getvalue().splitlines()[1:])


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ({"optimist": 0.62, "judge": 0.62}, False),
        ({"optimist": 0.7, "judge": 0.62, "historian": None}, True),
        ({"optimist": 0.7}, True),
    ],
)
def test_strongest_role_is_named_only_if_no_other_has_the_same_score(
    scores: dict[str, float | None], told: bool
) -> None:
    summary = {"dominant_argument": "optimist", "emerging_consensus": []}
    said = round_words({"summary": summary, "scores": scores, "phase": "opening"})
    assert ("Strongest: the optimist." in said) == told


def test_score_of_zero_is_shown_as_a_score() -> None:
    summary = {"dominant_argument": "judge", "emerging_consensus": []}
    scores = {"optimist": 0.0, "judge": 0.5, "historian": None}
    said = round_words({"summary": summary, "scores": scores, "phase": "opening"})
    assert said.startswith("Scores of the opening: optimist 0.00, judge 0.50.")


def test_show_and_export_have_the_forecast(contend: Command) -> None:
    debate = contend.here(*ASK, *NAMED, "--json", "-q").json["id"]
    shown = contend.here("show", debate).out
    assert "yes: It opens" in shown
    scored = [shown.index(f"Scores of the {name}") for name in ("opening", "rebuttal", "closing")]
    assert shown.index("Round 2 of 3") < scored[1] < shown.index("Round 3 of 3")
    assert scored[0] < shown.index("Round 2 of 3")
    assert scored[2] < shown.rindex("It will probably open.")
    document = contend.here("export", debate, "--format", "md").out
    row = "| 2 | pessimist | no | yes 0.3, no 0.7 | 0.62 | 0.70, 0.60, 0.50 | pessimist source 2 | "
    assert f"{row}optimist |" in document
    assert "| yes | 66% | 60% |" in document
    assert "optimist: 80%: The optimist's point of round 3." in document
    assert "## Forecast" in document
    assert "| yes: It opens | 66% | 70% | 60% |" in document


def test_exported_folder_has_the_forecast_roles_and_phases(
    contend: Command, tmp_path: Path
) -> None:
    debate = contend.here(*ASK, *NAMED, "--json", "-q").json["id"]
    to = ("--output", str(tmp_path))
    folder = Path(contend.here("export", debate, "--format", "folder", *to).out.strip())
    summary = (folder / "summary.md").read_text()
    assert "| yes: It opens | 66% | 70% | 60% |" in summary
    assert "- **Consensus:** 0.7" in summary
    names = {each.name.split("_")[1] for each in (folder / "messages").iterdir()}
    assert names == {*ROLES}
    index = (folder / "index.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")] for line in index.splitlines()]
    told = [(row[4], row[5]) for row in rows if len(row) > 6 and row[3] == "Optimist"]
    assert told == [("opening", "1"), ("rebuttal", "2"), ("closing", "3")]
    assert rows[-1][3:5] == ["Judge", "the verdict"]
    as_data = Path(contend.here("export", debate, "--format", "folder-json", *to).out.strip())
    kept = json.loads((as_data / "summary.json").read_text())["forecast"]
    assert kept["probability_distribution"][0]["probability"] == pytest.approx(0.66)
    assert "debate_log" not in kept


def test_quiet_gives_the_answer_and_the_numbers(contend: Command) -> None:
    ended = contend.here(*ASK, *NAMED, "-q")
    assert ended.out == "It will probably open.\nyes\t66%\nno\t34%\n"


def test_gaps_are_shown(contend: Command, models: ModelServer) -> None:
    calm = forecasters()

    def script(request: Any) -> Any:
        if "You are the Historian" in request.instructions:
            from tests.support.model_server import openai_error

            return openai_error(401, "no such luck")
        return calm(request)

    models.script = script
    said = " ".join(contend.here(*ASK, *NAMED).out.split())
    assert "! Historian: skipped this round" in said
    assert "! missing: historian, round 1, argument (Historian (openai:m): 401: no such" in said
    assert "(reduced: numbers are missing)" in said
    assert "! missing: historian, assessment" in said


def test_missing_scores_do_not_reduce_the_confidence(contend: Command, models: ModelServer) -> None:
    calm = forecasters()
    models.script = lambda request: (
        "Very good." if "Score this argument" in request.user else calm(request)
    )
    said = " ".join(contend.here(*ASK, *NAMED).out.split())
    assert "! missing: optimist, round 1, scores" in said
    assert "Confidence 0.63 of 1 Pool" in said


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (ForecastSettings(), True),
        (ForecastSettings(overall_timeout=600), False),
        (AdversarialSettings(), False),
    ],
)
def test_notice_recommends_more_time_for_the_embedded_model(
    settings: DebateSettings, told: bool
) -> None:
    seats = [
        seat.model_copy(update={"model": f"embedded:{SMALLEST}"}) for seat in settings.build_seats()
    ]
    said = time_notice(seats, settings)
    assert ("--set overall_timeout=600" in said) == told == bool(said)
    assert not time_notice(settings.build_seats(), settings)


@pytest.mark.parametrize(
    ("day", "told"), [("2020-01-01", True), ("2999-01-01", False), (None, False)]
)
def test_due_date_in_the_past_is_pointed_out(day: str | None, told: bool) -> None:
    assert ("is in the past" in due_notice(ForecastOptions(due=day))) == told


class TestRequestFile:
    def write(self, tmp_path: Path, request: Any) -> str:
        file = tmp_path / "request.json"
        text = request if isinstance(request, str) else json.dumps(request)
        file.write_text(text, encoding="utf-8")
        return str(file)

    def test_request_file_sets_the_whole_forecast(
        self, contend: Command, models: ModelServer, tmp_path: Path
    ) -> None:
        wanted = json.loads(json.dumps(REQUEST))
        wanted["config"] |= {"rounds": 1, "roles": ["pessimist", "judge"], "judge_weight": 0.5}
        path = self.write(tmp_path, wanted)
        ask = ["ask", "-p", "forecast", "-m", "openai:m", "--request", path, "--json"]
        record = contend.here(*ask).json
        assert record["request"] == wanted
        assert record["query"] == REQUEST["prediction_context"]["task"]["question"]
        assert len(models.calls) == 2 + 2 + 1
        # 0.5 x 0.7 + 0.5 x the mean of 0.2 and 0.5.
        yes = record["forecast"]["probability_distribution"][0]
        assert yes["probability"] == pytest.approx(0.5 * 0.7 + 0.5 * 0.35)
        assert record["forecast"]["task_id"] == "task-7"
        assert "Delays come in spring." in models.calls[0].request.user

    @pytest.mark.parametrize(
        ("end", "given", "due"),
        [
            ("2026-01-01", [], "2026-01-01"),
            ("2027-05-01", ["--due", "2026-01-02"], "2026-01-02"),
            (None, ["--due", "2026-01-02"], "2026-01-02"),
        ],
    )
    def test_forecast_is_due_at_the_end_of_its_timeframe_or_on_the_due_option(
        self, contend: Command, tmp_path: Path, end: str | None, given: list[str], due: str
    ) -> None:
        wanted = asked_of() | {"config": {"rounds": 1}}
        if end:
            wanted["prediction_context"]["data_summary"] = {"timeframe": {"end": end}}
        path = self.write(tmp_path, wanted)
        ended = contend.here("ask", "-p", "forecast", "-m", "openai:m", "--request", path, *given)
        assert ended.code == 0, ended.err
        (waiting,) = contend.here("due", "--json").json
        assert waiting["due"] == due

    def test_large_non_ascii_request_accepts_another_due_date(self) -> None:
        context = asked_of()["prediction_context"]
        large = {"economic_highlights": ["ж" * 2_000] * 50}
        wanted = asked_of() | {"prediction_context": context | {"data_summary": large}}
        read = read_request(json.dumps(wanted, ensure_ascii=False).encode())
        assert with_due(read, date(2027, 5, 1)).prediction_context.data_summary.timeframe.end

    def test_due_date_before_the_timeframe_starts_is_refused(
        self, contend: Command, tmp_path: Path
    ) -> None:
        path = self.write(tmp_path, REQUEST)
        ask = ["ask", "-p", "forecast", "-m", "openai:m", "--request", path]
        refused = contend.here(*ask, "--due", "2020-01-01")
        assert refused.code == 2
        assert "start is later than end" in refused.err

    def test_a_setting_wins_over_the_request(
        self, contend: Command, models: ModelServer, tmp_path: Path
    ) -> None:
        path = self.write(tmp_path, REQUEST)
        ask = ["ask", "-p", "forecast", "-m", "openai:m", "--request", path]
        contend.here(*ask, "--set", "max_rounds=1", "-q")
        assert len(models.calls) == 11

    def test_config_file_sets_what_the_request_leaves_out(
        self, contend: Command, models: ModelServer, tmp_path: Path
    ) -> None:
        least = {name: value for name, value in REQUEST.items() if name != "config"}
        least["config"] = {"roles": ["pessimist", "judge"]}
        (tmp_path / "c.yaml").write_text("max_rounds: 1\nroles: [optimist, judge]\n")
        path = self.write(tmp_path, least)
        ask = ["ask", "-p", "forecast", "-m", "openai:m", "--request", path]
        record = contend.here(*ask, "--config", str(tmp_path / "c.yaml"), "--json", "-q").json
        assert len(models.calls) == 2 + 2 + 1
        spoken = record["forecast"]["debate_log"]["rounds"][0]["arguments"]
        assert [each["role"] for each in spoken] == ["pessimist", "judge"]

    @pytest.mark.parametrize("request_data", REFUSED_REQUESTS.values(), ids=REFUSED_REQUESTS)
    def test_bad_requests_are_refused(
        self, contend: Command, models: ModelServer, tmp_path: Path, request_data: Any
    ) -> None:
        path = self.write(tmp_path, request_data)
        ended = contend.here("ask", "-p", "forecast", "-m", "openai:m", "--request", path)
        assert ended.code == 2
        assert ended.err.startswith("Error: The request cannot be used: ")
        assert models.calls == []

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", '"x"', json.dumps(REQUEST).replace("0.6", "NaN"), "x" * 300_000]
    )
    def test_file_that_is_not_a_request_is_refused(
        self, contend: Command, models: ModelServer, tmp_path: Path, text: str
    ) -> None:
        path = self.write(tmp_path, text)
        ended = contend.here("ask", "-p", "forecast", "-m", "openai:m", "--request", path)
        assert ended.code == 2
        assert models.calls == []
        assert len(ended.err) < 1000


REFUSED = {
    "one outcome": ([*ASK, "--outcome", "yes"], "needs at least two outcomes"),
    "no id": ([*ASK, "--outcome", ": x", *NAMED], "is not in the form ID: LABEL"),
    "no label": ([*ASK, "--outcome", "x:", *NAMED], "is not in the form ID: LABEL"),
    "same id": ([*ASK, *NAMED, "--outcome", "YES: again"], "two outcomes have the id 'yes'"),
    "no outcomes and nobody to ask": (ASK, "add --yes to accept outcomes proposed by a model"),
    "odd day": ([*ASK, *NAMED, "--due", "soon"], "--due must be a date such as"),
    "another protocol": (
        ["ask", QUESTION, "-m", "openai:m", *NAMED],
        "--outcome works only with --protocol forecast",
    ),
    "request of another protocol": (
        ["ask", "-m", "openai:m", "--request", "r.json"],
        "--request works only with --protocol forecast",
    ),
    "request and question": (
        [*ASK, "--request", "r.json"],
        "--request already contains the question and its outcomes; leave out QUESTION",
    ),
    "request and outcomes": (
        ["ask", "-p", "forecast", "--request", "r.json", *NAMED],
        "leave out --outcome",
    ),
    "no such file": (
        ["ask", "-p", "forecast", "-m", "openai:m", "--request", "r.json"],
        "The request r.json cannot be read",
    ),
    "unknown role": ([*ASK, *NAMED, "-s", "roles=[prophet,judge]"], "roles"),
    "no rounds": ([*ASK, *NAMED, "-s", "max_rounds=0"], "between 1 and 10, not 0"),
    "weight": ([*ASK, *NAMED, "-s", "judge_weight=1.5"], "between 0 and 1, not 1.5"),
    "infinite weight": ([*ASK, *NAMED, "-s", "judge_weight=.inf"], "must be a number"),
    "long question": (["ask", "x" * 10_001, *ASK[2:], *NAMED], "at most 10000 characters"),
    "long question without outcomes": (
        ["ask", "x" * 10_001, *ASK[2:], "--yes"],
        "at most 10000 characters",
    ),
}


@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused_before_any_call(
    contend: Command, models: ModelServer, arguments: list[str], said: str
) -> None:
    ended = contend.here(*arguments)
    assert ended.code == 2
    assert said in " ".join(ended.err.split())
    assert models.calls == []


class TestProposedOutcomes:
    def test_yes_accepts_the_proposed_outcomes(self, contend: Command, models: ModelServer) -> None:
        ended = contend.here(*ASK, "--yes", "--json")
        assert ended.code == 0
        assert len(models.calls) == 32
        context = ended.json["request"]["prediction_context"]
        assert context["outcomes"] == OUTCOMES
        assert context["data_summary"]["timeframe"]["end"] == "2027-05-01"
        said = " ".join(ended.err.split())
        assert "Outcomes proposed by openai:m" in said
        assert "yes: It opens." in said
        assert QUESTION in models.calls[0].request.user

    @pytest.mark.parametrize(("answer", "code", "calls"), [("y", 0, 32), (" NO", 2, 1)])
    def test_outcomes_are_shown_and_must_be_confirmed(
        self, contend: Command, models: ModelServer, answer: str, code: int, calls: int
    ) -> None:
        with (
            patch(
                "contend.cli.actions.forecast_request.sys.stdin.isatty",
                return_value=True,
                create=True,
            ),
            patch(
                "contend.cli.actions.forecast_request.typer.prompt", side_effect=["what?", answer]
            ) as prompt,
        ):
            ended = contend.here(*ASK, "-q")
        assert ended.code == code
        assert len(models.calls) == calls
        assert prompt.call_count == 2
        assert "Answer y or n." in ended.err
        assert "It opens" in ended.err
        if code:
            assert "You rejected these outcomes. Give your own, each with --outcome" in ended.err
            assert contend.here("list", "--json").json == []

    @pytest.mark.parametrize(
        "reply",
        [
            "not JSON",
            json.dumps({"outcomes": [OUTCOMES[0], OUTCOMES[0]], "due": None}),
            json.dumps({"outcomes": [OUTCOMES[0]], "due": None}),
            json.dumps({"outcomes": [OUTCOMES[0], OUTCOMES[1] | {"label": " "}], "due": None}),
        ],
    )
    def test_unusable_proposals_are_not_debated(
        self, contend: Command, models: ModelServer, reply: str
    ) -> None:
        models.script = lambda _: reply
        ended = contend.here(*ASK, "--yes")
        assert ended.code == 2
        assert "The model proposed no usable outcomes" in ended.err
        assert len(models.calls) == 1

    def test_no_outcomes_are_requested_while_the_database_is_unavailable(
        self, contend: Command, models: ModelServer
    ) -> None:
        contend.env["DATABASE_URL"] = "postgresql://127.0.0.1:1/debates"
        ended = contend.here(*ASK, "--yes")
        assert ended.code == 2
        assert "'debates' on 127.0.0.1:1 cannot be used" in ended.err
        assert models.calls == []


class TestResolving:
    @pytest.fixture
    def debate(self, contend: Command) -> str:
        return str(contend.here(*ASK, *NAMED, "--due", "2026-01-01", "--json", "-q").json["id"])

    def test_due_forecast_is_resolved_and_scored(self, contend: Command, debate: str) -> None:
        (waiting,) = contend.here("due", "--json").json
        assert (waiting["id"], waiting["due"]) == (debate, "2026-01-01")
        assert debate[:8] in contend.here("due").out
        resolved = contend.here("resolve", debate, "YES", "--json").json
        assert resolved == {
            "id": debate,
            "outcome": "yes",
            "probability": pytest.approx(0.66),
            "brier": pytest.approx(0.34**2),
            "log_loss": pytest.approx(-math.log(0.66)),
        }
        assert contend.here("due", "--json").json == []
        board = contend.here("scoreboard").out
        assert "1 forecast resolved. The extremizing factor (how far pooled probabilities" in board
        assert "is fitted once 20 forecasts are resolved" in " ".join(board.split())
        told = contend.here("resolve", debate, "yes").err
        assert "as yes; it had given this outcome 66%: Brier 0.1156, log loss 0.4155." in told

    def test_resolution_is_shown_and_exported(self, contend: Command, debate: str) -> None:
        waiting = contend.here("show", debate)
        assert "contend resolve" in waiting.out
        contend.here("rate", debate, "8")
        contend.here("resolve", debate, "no")
        shown = " ".join(contend.here("show", debate).out.replace("\u00a0", " ").split())
        assert "Due 2026-01-01" in shown
        assert "Came true no: It does not; the forecast gave it 34%" in shown
        assert "Your rating 8 of 10" in shown
        assert "not rated" not in shown
        assert "contend resolve" not in shown
        record = contend.here("show", debate, "--json").json
        assert (record["due"], record["resolution"]) == ("2026-01-01", "no")
        document = contend.here("export", debate, "--format", "md").out
        assert "- **Due:** 2026-01-01\n- **Came true:** no: It does not; the" in document

    def test_exported_folder_has_the_resolution(
        self, contend: Command, debate: str, tmp_path: Path
    ) -> None:
        contend.here("rate", debate, "8")
        contend.here("resolve", debate, "no")
        export = ("export", debate, "--format", "folder", "-o", str(tmp_path))
        summary = (Path(contend.here(*export).out.strip()) / "summary.md").read_text()
        assert "- **Your rating:** 8 of 10" in summary
        assert "- **Came true:** no: It does not; the forecast gave it 34%" in summary

    def test_changing_a_resolution_requires_replace(self, contend: Command, debate: str) -> None:
        contend.here("resolve", debate, "yes")
        refused = contend.here("resolve", debate, "no")
        assert refused.code == 2
        assert "already resolved as 'yes'; add --replace" in refused.err
        changed = contend.here("resolve", debate, "no", "--replace", "--json").json
        assert changed["brier"] == pytest.approx(0.66**2)

    def test_unknown_outcome_and_unknown_debate_are_refused(
        self, contend: Command, debate: str
    ) -> None:
        assert "has no outcome 'maybe'" in contend.here("resolve", debate, "maybe").err
        assert contend.here("resolve", "ffffffff", "yes").code == 2

    def test_scoreboard_without_resolved_forecasts_is_refused(self, contend: Command) -> None:
        assert contend.here("due", "--json").json == []
        refused = contend.here("scoreboard")
        assert refused.code == 2
        assert "No forecast is resolved yet" in refused.err

    def test_empty_plot_path_is_refused(self, contend: Command) -> None:
        refused = contend.here("scoreboard", "--plot", "")
        assert (refused.code, refused.err) == (2, "Error: The path given to --plot is empty.\n")

    def test_due_all_lists_forecasts_without_a_date(self, contend: Command) -> None:
        contend.here(*ASK, *NAMED, "-q")
        assert contend.here("due", "--json").json == []
        assert len(contend.here("due", "--all", "--json").json) == 1


@pytest.mark.slow
def test_scoreboard_of_twenty_forecasts_is_correct(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    """Recompute every figure of the scoreboard for forecasts with shifted numbers."""
    shifts = [round(-0.095 + 0.01 * n, 3) for n in range(20)]
    came = ["yes" if n % 3 else "no" for n in range(20)]

    def said(role: str, number: int, shift: float) -> float:
        return round(YES[role][number - 1] + shift, 3)

    for shift, outcome in zip(shifts, came, strict=True):
        last = round(0.7 + shift, 3)
        models.script = forecasters(lambda role, n, s=shift: said(role, n, s), last)  # type: ignore[misc]
        debate = contend.here(*ASK, *NAMED, "--json", "-q").json["id"]
        assert contend.here("resolve", debate, outcome).code == 0
    board = contend.here("scoreboard", "--json", "--plot", str(tmp_path / "c.svg")).json

    def scores(forecasts: list[float]) -> tuple[float, float]:
        right = [p if o == "yes" else 1 - p for p, o in zip(forecasts, came, strict=True)]
        count = len(right)
        return sum((1 - p) ** 2 for p in right) / count, sum(-math.log(p) for p in right) / count

    def table(name: str) -> dict[str, tuple[int, float, float]]:
        return {r["name"]: (r["count"], r["brier"], r["log_loss"]) for r in board[name]}

    assert board["resolved"] == 20
    for role in ROLES:
        wanted = scores([said(role, 3, s) for s in shifts])
        assert table("roles")[role] == pytest.approx((20, *wanted)), role
    verdicts = scores([0.7 + s for s in shifts])
    assert table("roles")["judge (verdict)"] == pytest.approx((20, *verdicts))
    means = {n: [sum(said(r, n, s) for r in ROLES) / 5 for s in shifts] for n in (1, 2, 3)}
    for number in (1, 2, 3):
        assert table("rounds")[f"round {number}"] == pytest.approx((20, *scores(means[number])))
    everything = [scores([said(r, n, s) for s in shifts]) for r in ROLES for n in (1, 2, 3)]
    everything.append(verdicts)
    by_model = [sum(each[at] for each in everything) / 16 for at in (0, 1)]
    assert table("models")["openai:m"] == pytest.approx((320, *by_model))
    contract = [0.6 * (0.7 + s) + 0.4 * m for s, m in zip(shifts, means[3], strict=True)]
    odds = [math.prod((said(r, 3, s) / (1 - said(r, 3, s))) ** 0.2 for r in ROLES) for s in shifts]
    pools = {
        "contract": contract,
        "linear": means[3],
        "log_odds": [round(o / (1 + o), 4) for o in odds],
        "extremised": [round(o**1.1 / (1 + o**1.1), 4) for o in odds],
    }
    for name, forecasts in pools.items():
        assert table("pools")[name] == pytest.approx((20, *scores(forecasts))), name
    pooled = [({"yes": p, "no": 1 - p}, o) for p, o in zip(pools["log_odds"], came, strict=True)]
    assert board["factor"] == pytest.approx(fitted_factor(pooled), abs=0.002)
    assert sum(row["count"] for row in board["calibration"]) == 40
    for row in board["calibration"]:
        inside = [
            (p if side == "yes" else 1 - p, o == side)
            for p, o in zip(contract, came, strict=True)
            for side in ("yes", "no")
        ]
        inside = [(p, hit) for p, hit in inside if row["low"] <= p < row["high"]]
        assert row["count"] == len(inside)
        if inside:
            assert row["forecast"] == pytest.approx(sum(p for p, _ in inside) / len(inside))
            assert row["observed"] == pytest.approx(sum(hit for _, hit in inside) / len(inside))
    drawing = ET.fromstring((tmp_path / "c.svg").read_text(encoding="utf-8"))  # noqa: S314 - ours
    filled = [row for row in board["calibration"] if row["count"]]
    assert len(drawing.findall("{http://www.w3.org/2000/svg}circle")) == len(filled)
    written = [text.text for text in drawing.findall("{http://www.w3.org/2000/svg}text")]
    assert [written.count(share) for share in ("0%", "25%", "50%", "75%", "100%")] == [2] * 5
    shown = contend.here("scoreboard").out
    assert f"fitted on these: {board['factor']:g}" in shown
    assert "mean log-odds" in shown


@pytest.mark.parametrize("of", ["request", "result"])
def test_the_schemas_are_printed(contend: Command, of: str) -> None:
    printed = contend.here("schema", of).json
    assert printed["title"] == f"Debate{of.capitalize()}"
    assert printed["additionalProperties"] is False
