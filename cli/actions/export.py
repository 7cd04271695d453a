"""Exports a debate as a document or a folder."""

import sys
from pathlib import Path

from contend.cli import database
from contend.cli.view.console import print_message
from contend.cli.view.format import plain
from contend.debates.exports.folder import write_folder
from contend.debates.exports.formats import EXPORT_FORMATS
from contend.graph.errors import BadInput
from contend.graph.settings import FolderPlan, outputs_home


def export_debate(
    reference: str, format_name: str, output: Path | None, *, transcript: bool
) -> None:
    """Write one document to a file or stdout, or write a folder and print its path."""
    form = EXPORT_FORMATS.get(format_name)
    if form is None:
        known = ", ".join(EXPORT_FORMATS)
        raise BadInput(f"There is no export format '{format_name}'. Known: {known}.")
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
