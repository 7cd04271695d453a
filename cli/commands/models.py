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
            help="The model, or hf:OWNER/REPO/FILE.gguf from the Hugging Face hub "
            "(default: the models used when there is no API key).",
        ),
    ] = None,
) -> None:
    """Download an embedded model."""
    from contend.cli.actions.models import pull_named
    from contend.cli.view.console import print_message  # slow to import

    print_message(pull_named(name))


@app.command("rm")
def remove_model(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The model's name, as in `contend models list`.")
    ],
) -> None:
    """Delete a downloaded model."""
    from contend.cli.actions.models import remove_named
    from contend.cli.view.console import print_message  # slow to import

    print_message(remove_named(name))


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
        here = "downloaded" if model["pulled"] else "not downloaded"
        size, memory = round(model["size"] / 1e6), model["memory"]
        needs = f", needs {memory / 1e9:g} GB of memory" if memory else ""
        typer.echo(f"{model['spec']}  {model['use']}  {size:,} MB{needs}  {here}")
        if model["good_for"]:
            typer.echo(f"  {model['good_for']} ({model['licence']})")
    typer.echo("To download one: contend models pull NAME. Your own file: embedded:PATH.gguf.")
