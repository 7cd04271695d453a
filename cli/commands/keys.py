from dataclasses import asdict
from typing import Annotated

import typer

from contend.cli.commands.options import Json, show_help

app = typer.Typer(help="Manage API keys for model providers.")
app.callback(invoke_without_command=True)(show_help)

_Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The key's name, such as OPENAI_API_KEY.")
]


@app.command("set")
def set_key(name: _Name) -> None:
    """Prompt for a key, or read it from stdin, and store it. The key is never shown."""
    from contend.cli.actions.keys import ask_and_store
    from contend.cli.view.console import print_message  # slow to import

    print_message(ask_and_store(name))


@app.command("list")
def list_keys(json: Json = False) -> None:
    """List the names of the keys that are set, and where each key comes from."""
    from contend.cli.view.console import write_json  # slow to import
    from contend.models.keys import key_sources

    found = key_sources()
    if json:
        write_json([asdict(each) for each in found])
        return
    for each in found:
        if each.source:
            typer.echo(f"{each.name}  from {each.source}")
    if not any(each.source for each in found):
        typer.echo("No key is set. Add one with: contend keys set OPENAI_API_KEY")


@app.command("rm")
def remove_stored_key(name: _Name) -> None:
    """Delete a stored key."""
    from contend.cli.view.console import print_message  # slow to import
    from contend.models.keys import remove_key

    remove_key(name)
    print_message(f"Deleted the stored {name}.")
