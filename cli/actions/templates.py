import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from contend.cli import database
from contend.cli.actions.models import progress, pull_embedding
from contend.cli.exit_codes import BAD_INPUT, MODEL_FAILED, OK
from contend.cli.view.console import print_message, stdout, write_json
from contend.cli.view.format import counted, plain
from contend.debates.exports.wording import sentence
from contend.debates.settings_sources import configure
from contend.debates.template_learning import check_teaches, learn_template
from contend.graph.errors import BadInput, ModelFailed
from contend.graph.settings import DebateSettings, data_home
from contend.models.embeddings import EMBEDDED_EMBEDDING, Embedder, EmbeddingFailed
from contend.models.providers.registry import open_models
from contend.models.seats import choose_seats
from contend.nodes.retrieve import checked_question
from contend.retrieval import template_search, templates
from contend.retrieval.templates import Library, Template, lint_template, read_template


def print_templates(*, as_json: bool) -> None:
    known, problems = _load()
    everything = sorted(known, key=lambda each: each.id)
    _print_problems(problems)
    if as_json:
        write_json([_described(each) for each in everything])
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("ID", "Kind", "Origin"):
        table.add_column(heading, no_wrap=True)
    table.add_column("Title", overflow="fold")
    for each in everything:
        table.add_row(each.id, each.kind, each.origin, Text(plain(each.title)))
    stdout().print(table)


def print_template(template_id: str, *, as_json: bool) -> None:
    found = next((each for each in _load()[0] if each.id == template_id), None)
    if found is None:
        raise BadInput(
            f"No template has the id '{template_id}'. List them with `contend templates list`."
        )
    if as_json:
        write_json(_described(found) | {"body": found.body})
    else:
        sys.stdout.write(plain(found.as_file()))


def search_templates(
    question: str, limit: int, embedding_model: str | None, *, as_json: bool
) -> None:
    asked = checked_question(question)
    settings, embedder = _embedder(embedding_model)

    async def rank() -> tuple[template_search.Searcher, template_search.Ranking]:
        async with open_models():
            with progress("Indexing the templates", quiet=False) as on_progress:
                searcher = await template_search.open_searcher(embedder, on_progress)
            return searcher, await searcher.rank(asked)

    searcher, ranking = _embedding(rank())
    rule, notes = template_search.rule_of(embedder, settings)
    notes += searcher.take_notices()
    used = ranking.chosen(settings.top_k, rule)
    rows = [
        {"id": each.template.id, "title": each.template.title, "score": round(each.score, 4)}
        | {"used": each in used}
        for each in ranking.ranked[: max(limit, len(used))]
    ]
    if as_json:
        about = {"min_similarity": rule.least, "plain": ranking.plain, "notes": notes}
        about |= {"embedding_model": embedder.spec}
        write_json({"question": asked, **about, "templates": rows})
    else:
        _print_rows(rows)
        for note in [_explained(used, ranking, rule, settings), *notes]:
            print_message(note)
    _print_problems(searcher.library.problems)


def _print_rows(rows: list[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("Score", justify="right")
    table.add_column("Used")
    table.add_column("ID", no_wrap=True)
    table.add_column("Title", overflow="fold")
    for row in rows:
        style = "" if row["used"] else "muted"
        used = "yes" if row["used"] else "no"
        table.add_row(f"{row['score']:.2f}", used, row["id"], plain(row["title"]), style=style)
    stdout().print(table)


def _explained(
    used: Sequence[object],
    ranking: template_search.Ranking,
    rule: template_search.Rule,
    settings: DebateSettings,
) -> str:
    if ranking.plain and rule.none_if_plain:
        return "No template would be used: this looks like a simple request."
    if not used:
        return f"No template would be used: a match must score at least {rule.least:g}."
    near = " and close to the best" if rule.spread is not None else ""
    limits = f"at most {settings.top_k}, scoring {rule.least:g} or more{near}"
    return f"{counted(len(used), 'template')} would be used ({limits})."


def add_files(files: Sequence[Path]) -> None:
    given = [read_template(path, "user") for path in files]
    library = templates.load_library(data_home())
    taken = {each.id for each in library.templates}
    for path, template in zip(files, given, strict=True):
        if template.id in taken:
            raise BadInput(f"{path}: the id '{template.id}' is already used; choose another.")
        taken.add(template.id)
    added = templates.add_templates(given, data_home())
    for template, path in zip(given, added, strict=True):
        print_message(f"Added {template.id}: {path}")
        for each in [*lint_template(template), *_copied(template, library)]:
            print_message(f"Advice: {each}.", style="warning")


def _copied(template: Template, library: Library) -> list[str]:
    return [
        f"it covers the same questions as '{each.id}', so debates would get both"
        for each in library.templates
        if each.use_when == template.use_when or each.body.strip() == template.body.strip()
    ]


def accept_template(template_id: str) -> None:
    print_message(f"Accepted: {templates.accept_candidate(template_id, data_home())}")


def delete_template(template_id: str) -> None:
    print_message(f"Removed {templates.remove_template(template_id, data_home())}")


def lint_templates(files: Sequence[Path], *, as_json: bool) -> int:
    problems: list[tuple[str, str]] = []
    of_files: list[Template] = []
    for path in files:
        try:
            of_files.append(read_template(path, "user"))
        except BadInput as error:
            problems.append((str(path), str(error)))
    kept, kept_problems = _load()
    checked = of_files if files else kept
    if not files:
        problems += [("", each) for each in kept_problems]
    for template in checked:
        problems += [(template.id, each) for each in lint_template(template)]
    others = [each for each in kept if each.id not in {file.id for file in of_files}]
    problems += _duplicates(checked, others if files else [])
    if as_json:
        listed = [{"template": name, "problem": problem} for name, problem in problems]
        write_json({"checked": len(checked), "problems": listed})
    else:
        for name, problem in problems:
            known = not name or problem.startswith(name)
            sys.stdout.write(f"{plain(problem if known else f'{name}: {problem}')}\n")
        print_message(
            f"{counted(len(checked), 'template')} checked, {counted(len(problems), 'problem')}."
        )
    return BAD_INPUT if problems else OK


def _duplicates(checked: Sequence[Template], others: Sequence[Template]) -> list[tuple[str, str]]:
    if not checked:
        return []
    # The limit was measured with this model; other models give different scores.
    _, embedder = _embedder(EMBEDDED_EMBEDDING)

    async def compare() -> list[tuple[str, str, float]]:
        async with open_models():
            return await template_search.find_duplicates([*others, *checked], embedder)

    names = {template.id for template in checked}
    limit = templates.MAX_SIMILARITY
    return [
        (one, f"it covers the same questions as '{other}' ({score:.2f}, limit {limit})")
        for one, other, score in _embedding(compare())
        if names & {one, other}
    ]


def rebuild_template_index(embedding_model: str | None) -> None:
    _, embedder = _embedder(embedding_model)

    async def build() -> template_search.Searcher:
        with progress("Indexing the templates", quiet=False) as on_progress:
            async with open_models():
                return await template_search.rebuild_index(embedder, on_progress)

    searcher = _embedding(build())
    _print_problems(searcher.library.problems)
    count = counted(len(searcher.library.templates), "template")
    print_message(" ".join([f"Indexed {count} with {embedder.spec}.", *searcher.take_notices()]))


def learn_from_debate(reference: str, model: str | None, *, yes: bool) -> int:
    with database.existing(reference) as (_, debate):
        check_teaches(debate)
        print_message("Writing a template from the debate, with one model call ...")
        try:
            learnt = asyncio.run(learn_template(debate, debate.as_settings(), model))
        except ModelFailed as failed:
            print_message(
                f"Error: {sentence(str(failed))} Try again, or choose another --model.", "error"
            )
            return MODEL_FAILED
    path = templates.keep_candidate(learnt, data_home())
    kept = read_template(path, "candidate")
    sys.stdout.write(f"{plain(kept.as_file())}\n")
    sys.stdout.flush()
    for each in lint_template(kept):
        print_message(f"Advice: {each}.", style="warning")
    if yes or _confirm():
        accept_template(kept.id)
        return OK
    print_message(
        f"Saved as a candidate: {path}. Accept it with: contend templates accept {kept.id}\n"
        f"Delete it with: contend templates remove {kept.id}"
    )
    return OK


def _confirm() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write("Use this template in future debates? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _load() -> tuple[list[Template], list[str]]:
    library = templates.load_library(data_home())
    candidates = templates.load_candidates(data_home())
    known = [*library.templates, *candidates.templates]
    return known, [*library.problems, *candidates.problems]


def _described(template: Template) -> dict[str, Any]:
    return template.model_dump(mode="json", exclude={"body"})


def _embedder(embedding_model: str | None) -> tuple[DebateSettings, Embedder]:
    flags = {"embedding_model": embedding_model} if embedding_model else {}
    settings = configure("adversarial", flags, None, None, dict(os.environ)).settings
    spec = asyncio.run(choose_seats(settings)).embedding_model
    pull_embedding(spec)
    return settings, Embedder(spec, settings)


def _embedding(work: Any) -> Any:
    try:
        return asyncio.run(work)
    except EmbeddingFailed as failed:
        raise BadInput(str(failed)) from failed


def _print_problems(problems: Sequence[str]) -> None:
    for problem in problems:
        print_message(f"Skipped: {problem}", style="warning")
