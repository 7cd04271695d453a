import sys
import webbrowser

from contend.cli import database
from contend.cli.view.console import print_message
from contend.debates.exports.html import to_page
from contend.debates.record import StoredDebate
from contend.graph.errors import BadInput
from contend.graph.settings import outputs_home
from contend.models.files import write_private_file
from contend.service.address import page_of


def show_in_browser(reference: str, *, open_page: bool) -> None:
    with database.existing(reference) as (_, debate):
        address = page_of(debate.id) or _write_file(debate)
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    if open_page and not webbrowser.open(address):
        print_message("No browser was found; open the address yourself.")


def _write_file(debate: StoredDebate) -> str:
    file = outputs_home() / f"{debate.id}.html"
    try:
        write_private_file(file, to_page(debate).encode())
    except OSError as error:
        raise BadInput(f"Cannot write {file}: {error.strerror or error}.") from error
    return file.absolute().as_uri()
