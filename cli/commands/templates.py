"""`contend templates`: the library of reasoning templates; the work is in cli.actions.templates."""

from pathlib import Path
from typing import Annotated

import typer

from contend.cli.commands.ask import Json

app = typer.Typer(help="Find, add and learn reasoning templates.")

_Id = Annotated[str, typer.Argument(metavar="ID", help="The template's id.")]
_EmbeddingModel = Annotated[
    str | None,
    typer.Option("--embedding-model", "-e", metavar="SPEC", help="The model that finds them."),
]


@app.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """Show the help when no command is given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list")
def list_templates(json: Json = False) -> int:
    """List the templates that ship, your own, and candidates that wait for your yes."""
    from contend.cli.actions import templates as actions  # --help must not wait for it

    return actions.list_templates(as_json=json)


@app.command("show")
def show(template: _Id, json: Json = False) -> int:
    """Print one template."""
    from contend.cli.actions import templates as actions  # --help must not wait for it

    return actions.show(template, as_json=json)


@app.command("search")
def search(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What would be asked.")],
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many to show.")] = 5,
    embedding_model: _EmbeddingModel = None,
    json: Json = False,
) -> int:
    """Show which templates a question would get, and which come next."""
    from contend.cli.actions import templates as actions  # --help must not wait for it

    return actions.search(question, limit, embedding_model, as_json=json)


@app.command("add")
def add(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="A Markdown file.")],
) -> int:
    """Add templates of your own, all or none."""
    from contend.cli.actions import templates as actions  # --help must not wait for it

    return actions.add(files)


@app.command("accept")
def accept(template: _Id) -> int:
    """Say yes to a candidate: it is used from now on."""
    from contend.cli.actions import templates as actions  # --help must not wait for it

    return actions.accept(template)


@app.command("remove")
def remove(template: _Id) -> int:
    """Remove a template of your own, or a candidate."""
    from contend.cli.actions import templates as actions  # --help must not wait for it

    return actions.remove(template)


@app.command("lint")
def lint(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Files instead of the library.")
    ] = None,
    json: Json = False,
) -> int:
    """Check templates: their form, their length, and that no two are for the same questions."""
    from contend.cli.actions import templates as actions  # --help must not wait for it

    return actions.lint(files or [], as_json=json)


@app.command("rebuild")
def rebuild(embedding_model: _EmbeddingModel = None) -> int:
    """Build the index of the templates anew."""
    from contend.cli.actions import templates as actions  # --help must not wait for it

    return actions.rebuild(embedding_model)


@app.command("learn")
def learn(
    debate: Annotated[str, typer.Argument(metavar="DEBATE_ID", help="A debate rated 8 or more.")],
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", metavar="SPEC", help="By default the Synthesizer's."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Use it without asking.")] = False,
) -> int:
    """Distil a well-rated debate into a template; one model call. It waits for your yes."""
    from contend.cli.actions import templates as actions  # --help must not wait for it

    return actions.learn(debate, model, yes=yes)
