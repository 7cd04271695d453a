import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contend.debates import prepare
from contend.debates.settings_sources import CONFIG_NAME, configure
from contend.evals.arms import (
    ARMS,
    GATED_PROTOCOL,
    ArmContext,
    ArmOutcome,
    NotApplicable,
    Plan,
    arm_of,
    protocols_of,
)
from contend.evals.chosen_items import ChosenItems
from contend.evals.grading import question_text
from contend.evals.items import Item, choose_items
from contend.evals.public_sets import read_data
from contend.evals.rubric import judge_seat, score_by_rubric
from contend.evals.run_store import EvalResult, RunStore
from contend.graph.errors import BadInput, ModelFailed
from contend.graph.settings import SETTINGS, data_home
from contend.graph.values import Usage
from contend.models.failures import scrub
from contend.models.providers.registry import check_models, open_models
from contend.models.recording import Recording, using_recording

# After this many failures in a row, the next item would probably fail for the same reason.
MOST_FAILURES = 10


@dataclass(frozen=True)
class EvalOptions:
    arms: tuple[str, ...]
    data: tuple[str, ...]
    model: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    config: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """The environment variables that are settings."""
    limit: int | None = None
    seed: int = 0
    samples: int = 5
    equal_tokens: bool = False
    judge: str | None = None

    def identity(self) -> dict[str, Any]:
        """Return the options that must stay the same when a run is continued."""
        return {
            "data": list(self.data),
            "model": self.model,
            "settings": json.loads(json.dumps(dict(self.flags), default=str)),
            "config": _read_config(self.config or data_home() / CONFIG_NAME),
            "variables": dict(self.variables),
            "seed": self.seed,
            "samples": self.samples,
            "equal_tokens": self.budget_arm,
            "judge": self.judge,
        }

    @property
    def budget_arm(self) -> str | None:
        """Return the debate arm that sets the other arms' token budget."""
        if not self.equal_tokens:
            return None
        return next((arm for arm in self.arms if arm in SETTINGS), None)

    def default_folder(self) -> Path:
        written = json.dumps(self.identity(), sort_keys=True)
        name = "-".join(each.partition("=")[0] for each in self.data)
        digest = hashlib.sha256(written.encode()).hexdigest()[:8]
        return data_home() / "evals" / f"{Path(name).stem[:40]}-{digest}"


@dataclass(frozen=True)
class DataItem:
    data: str
    item: Item
    version: int | None = None

    @property
    def key(self) -> str:
        return f"{self.data}/{self.item.id}"


def check_arms(options: EvalOptions) -> None:
    if not options.arms:
        raise BadInput(f"Name at least one arm with --arms: {', '.join(ARMS)}, or all.")
    for arm in options.arms:
        if arm not in ARMS:
            raise BadInput(f"There is no arm '{arm}'. Known: {', '.join(ARMS)}, or all.")
    if options.equal_tokens and options.budget_arm is None:
        raise BadInput(
            "--equal-tokens gives every arm the tokens of a debate, so one of the arms must be a "
            f"protocol: {', '.join(SETTINGS)}."
        )


def load_items(options: EvalOptions) -> tuple[list[DataItem], list[str]]:
    found: list[DataItem] = []
    problems: list[str] = []
    for given in options.data:
        name, loaded = read_data(given)
        chosen = choose_items(loaded.items, options.limit, options.seed)
        found += [DataItem(name, item, loaded.version) for item in chosen]
        problems += loaded.problems
    if not found:
        why = f" {problems[0]}" if problems else ""
        raise BadInput(f"There are no items to run.{why}")
    return found, problems


def describe_items(items: Sequence[DataItem]) -> ChosenItems:
    return ChosenItems(
        hashes={each.key: each.item.digest for each in items},
        versions={each.data: each.version for each in items if each.version is not None},
    )


async def plan_arms(
    options: EvalOptions,
    items: Sequence[DataItem],
    environ: Mapping[str, str],
    reporter: prepare.Reporter,
) -> tuple[dict[str, Plan], list[str]]:
    plans: dict[str, Plan] = {}
    notices: dict[str, None] = {}
    longest = max((question_text(each.item) for each in items), key=len)
    protocols = protocols_of(options.arms)
    _refuse_unknown_settings(options.flags, protocols)
    for protocol in protocols:
        known = SETTINGS[protocol].model_fields
        flags = {name: value for name, value in options.flags.items() if name in known}
        found = configure(protocol, flags, options.model, options.config, environ)
        if found.settings.budget or found.settings.max_cost:
            raise BadInput("An eval has no budget; limit it with --limit, or use --equal-tokens.")
        draft = prepare.draft_debate(longest, found.settings)
        prepared = await prepare.prepare_debate(draft, reporter)
        if prepare.waits_for_person(prepared.settings, prepared.plan.seats):
            raise BadInput(
                "An eval cannot wait for a person; leave the setting `pause` at never, and give "
                "every seat a model."
            )
        plans[protocol] = Plan(prepared.settings, prepared.plan.seats)
        notices |= dict.fromkeys((*found.notices, prepared.plan.notice))
    if options.judge:
        notices |= dict.fromkeys(await check_models([options.judge]))
    return plans, [notice for notice in notices if notice]


def _read_config(file: Path) -> str | None:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None  # an error of --config is reported when the settings are read


def _refuse_unknown_settings(flags: Mapping[str, Any], protocols: Iterable[str]) -> None:
    known = {name for protocol in protocols for name in SETTINGS[protocol].model_fields}
    for name in flags:
        if name not in known:
            raise BadInput(f"No arm of this run has a setting '{name}'.")


class EvalRun:
    """Runs the unfinished items; calls `report` after each arm of each item."""

    def __init__(
        self,
        store: RunStore,
        options: EvalOptions,
        plans: dict[str, Plan],
        report: Callable[[EvalResult], None] = lambda _: None,
    ) -> None:
        self._store, self._options, self._plans, self._report = store, options, plans, report
        self._waiting: deque[DataItem] = deque()
        self._workers: list[asyncio.Task[None]] = []
        self.failures = 0
        """How many runs in a row have failed."""

    def unfinished(self, items: Iterable[DataItem]) -> int:
        arms = self._options.arms
        return sum(not self._store.is_finished(each.key, arm) for each in items for arm in arms)

    async def run(self, items: Sequence[DataItem], parallel: int) -> None:
        self._waiting = deque(each for each in items if self.unfinished([each]))
        async with open_models():
            self._workers = [asyncio.create_task(self._work()) for _ in range(parallel)]
            for ended in await asyncio.gather(*self._workers, return_exceptions=True):
                if ended and not isinstance(ended, asyncio.CancelledError):
                    raise ended

    def stop(self) -> None:
        self._waiting.clear()
        for worker in self._workers:
            worker.cancel()

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._answer(self._waiting.popleft())
        except BaseException:  # for example a full disk: do not pay for calls that cannot be stored
            self._waiting.clear()
            raise

    async def _answer(self, each: DataItem) -> None:
        first = self._options.budget_arm
        for arm in sorted(self._options.arms, key=lambda arm: arm != first):
            if not self._store.is_finished(each.key, arm) and self.failures < MOST_FAILURES:
                result = await self._run_arm(each, arm)
                self._store.add(result)
                self.failures = self.failures + 1 if result.status == "failed" else 0
                self._report(result)

    async def _run_arm(self, each: DataItem, arm: str) -> EvalResult:
        item = each.item
        about: dict[str, Any] = {"item": each.key, "data": each.data, "topic": item.topic}
        about |= {"kind": item.kind, "truth": item.answer, "arm": arm}
        try:
            recording = self._store.recording(each.key, arm)
            with using_recording(recording):
                outcome = await arm_of(arm)(item, self._context(each, arm, recording))
        except NotApplicable as refused:
            return EvalResult(**about, status="not_applicable", error=str(refused))
        except ModelFailed as failed:
            about |= {"status": "failed", "error": scrub(str(failed))}
        except BadInput as refused:
            about |= {"status": "failed", "error": str(refused)}
        except Exception as error:  # noqa: BLE001 - one item must not end the others
            about |= {"status": "failed", "error": scrub(f"{type(error).__name__}: {error}")}
        else:
            about |= {
                "status": "done",
                **_described(outcome),
                **await self._judged(each, outcome, arm),
            }
        return EvalResult(**about, **self._store.spent(each.key, arm))

    async def _judged(self, each: DataItem, outcome: ArmOutcome, arm: str) -> dict[str, Any]:
        """Return the judge's scores of an open answer; their cost is not added to the arm's."""
        if each.item.kind != "open" or self._options.judge is None:
            return {}
        judge, settings = judge_seat(self._options.judge), self._plans[GATED_PROTOCOL].settings
        try:
            with using_recording(self._store.recording(each.key, f"{arm} judge")):
                found = await score_by_rubric(each.item, outcome.reply, judge, settings)
        except ModelFailed as failed:
            return {"rubric_error": scrub(str(failed))}
        return {
            "rubric": found.score,
            "rubric_agreement": found.agreement,
            "rubric_error": found.error,
        }

    def _context(self, each: DataItem, arm: str, recording: Recording) -> ArmContext:
        options = self._options

        def spent() -> Usage:
            # Stored calls of a stopped run count only when they are made again.
            used = self._store.spent(each.key, arm, so_far=recording)
            return Usage(input_tokens=used["input_tokens"], output_tokens=used["output_tokens"])

        if options.budget_arm in (None, arm):
            return ArmContext(self._plans, options.samples)
        debate = self._store.results.get((each.key, options.budget_arm or ""))
        if debate is None or debate.status != "done" or debate.tokens is None:
            raise BadInput(
                f"The tokens of {options.budget_arm} are not known for this item, so no arm can be "
                "given as many."
            )
        return ArmContext(self._plans, options.samples, debate.tokens, spent)


def _described(outcome: ArmOutcome) -> dict[str, Any]:
    grade, vote = outcome.grade, outcome.vote
    return {
        "reply": outcome.reply,
        "answer": grade.answer,
        "right": grade.right,
        "probability": grade.probability,
        "drafts": outcome.drafts,
        "vote": vote.answer if vote else None,
        "vote_right": vote.right if vote else None,
        "debated": outcome.debated,
        "stop_reason": outcome.stop_reason,
    }
