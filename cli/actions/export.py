import sys
from pathlib import Path

from contend.cli import database
from contend.cli.view.console import print_message
from contend.cli.view.format import plain
from contend.debates.exports.folder import write_folder
from contend.debates.exports.formats import EXPORT_FORMATS, ExportFormat
from contend.debates.exports.training import training_data
from contend.debates.stats import read_all
from contend.graph.errors import BadInput
from contend.graph.settings import FolderPlan, outputs_home

DEFAULT_MIN_SCORE = 8.0


def find_format(name: str) -> ExportFormat:
    form = EXPORT_FORMATS.get(name)
    if form is None:
        known = ", ".join(EXPORT_FORMATS)
        raise BadInput(f"There is no export format '{name}'. Known: {known}.")
    return form


def export_debate(
    reference: str | None,
    format_name: str,
    output: Path | None,
    min_score: float | None,
    *,
    transcript: bool,
) -> None:
    form = find_format(format_name)
    if reference is None:
        raise BadInput("Give the id of the debate to export; `contend list` shows the ids.")
    if min_score is not None:
        raise BadInput("--min-score works only with --format sft and dpo.")
    if transcript and not form.files:
        raise BadInput(
            "--transcript works only with --format folder; a document always has every turn."
        )
    with database.existing(reference) as (records, debate):
        if form.files is None:
            write_document(form.document(records, debate) or "", output)
        else:
            place = output.expanduser().absolute() if output else outputs_home()
            try:
                folder = write_folder(debate, FolderPlan(place, form.files, transcript))
            except OSError as error:
                raise BadInput(f"Cannot write {place}: {error.strerror or error}.") from error
            write_document(f"{folder}\n", None)


def export_training_data(
    reference: str | None,
    form: str,
    output: Path | None,
    min_score: float | None,
    *,
    transcript: bool,
) -> None:
    if reference is not None:
        raise BadInput(f"--format {form} takes all debates; leave out the id '{reference}'.")
    if transcript:
        raise BadInput("--transcript works only with --format folder.")
    least = DEFAULT_MIN_SCORE if min_score is None else min_score
    if database.is_empty():
        raise BadInput('There are no debates yet. Start one with: contend ask "..."')
    with database.records() as records:
        found = training_data(read_all(records, database.print_skipped), form, least)
    if not found.rows:
        why = "; ".join(f"{n} {reason}" for reason, n in found.left_out.items())
        raise BadInput(f"No debate qualifies as training data: {why}.")
    write_document(found.as_jsonl(), output)
    if output:
        write_document(found.card(), output.with_name(f"{output.stem}.card.md"))
    else:
        print_message(f"{len(found.rows)} rows. With --output, Contend also writes a dataset card.")


def write_document(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(plain(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
        return
    try:
        output.write_text(text, "utf-8")
    except OSError as error:
        raise BadInput(f"Cannot write {output}: {error.strerror or error}.") from error
    print_message(f"Wrote {output}.")
