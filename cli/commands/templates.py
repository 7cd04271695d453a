from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from contend.cli.commands.options import Json, show_help

app = typer.Typer(
    help="Manage reasoning templates.\n\n"
    "A reasoning template lists steps, checks and typical errors for one kind of question. "
    "Before a debate, Contend gives the first speakers the templates that fit the question."
)

_Id = Annotated[str, typer.Argument(metavar="ID", help="The template's id.")]
_EmbeddingModel = Annotated[
    str | None,
    typer.Option(
        "--embedding-model", "-e", metavar="PROVIDER:NAME", help="Embedding model to use."
    ),
]
app.callback(invoke_without_command=True)(show_help)


class _FilesCommand(TyperCommand):
    def get_help(self, ctx: Any) -> str:
        # Typer shows the Python type of a list.
        return super().get_help(ctx).replace("<list[Path]>", "<path>")


@app.command("list")
def list_templates(json: Json = False) -> None:
    """List the built-in templates and your own.

    Includes templates written by `learn` that you have not accepted yet."""
    from contend.cli.actions import templates as actions  # slow to import

    actions.print_templates(as_json=json)


@app.command("show")
def show_template(template: _Id, json: Json = False) -> None:
    """Print one template."""
    from contend.cli.actions import templates as actions  # slow to import

    actions.print_template(template, as_json=json)


@app.command("search")
def search(
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="The question to find templates for.")
    ],
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=100, help="How many templates to list.")
    ] = 5,
    embedding_model: _EmbeddingModel = None,
    json: Json = False,
) -> None:
    """Rank the templates by how well they fit a question."""
    from contend.cli.actions import templates as actions  # slow to import

    actions.search_templates(question, limit, embedding_model, as_json=json)


@app.command("add", cls=_FilesCommand)
def add(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Markdown files to add."),
    ],
) -> None:
    """Add your own templates. If any file is invalid, nothing is added."""
    from contend.cli.actions import templates as actions  # slow to import

    actions.add_files(files)


@app.command("accept")
def accept(template: _Id) -> None:
    """Accept a template that `learn` wrote, so that debates use it."""
    from contend.cli.actions import templates as actions  # slow to import

    actions.accept_template(template)


@app.command("remove")
def remove(template: _Id) -> None:
    """Remove one of your templates, or one that `learn` wrote."""
    from contend.cli.actions import templates as actions  # slow to import

    actions.delete_template(template)


@app.command("lint", cls=_FilesCommand)
def lint(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Files to check (default: all templates)."),
    ] = None,
    json: Json = False,
) -> int:
    """Check the format and length of templates, and find duplicates."""
    from contend.cli.actions import templates as actions  # slow to import

    return actions.lint_templates(files or [], as_json=json)


@app.command("rebuild")
def rebuild(embedding_model: _EmbeddingModel = None) -> None:
    """Rebuild the template index.

    Contend keeps the index up to date by itself. Rebuild it if searches give wrong results."""
    from contend.cli.actions import templates as actions  # slow to import

    actions.rebuild_template_index(embedding_model)


@app.command("learn")
def learn(
    debate: Annotated[
        str,
        typer.Argument(
            metavar="DEBATE_ID", help="A debate rated 8 or higher: its id or a unique prefix."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="PROVIDER:NAME",
            help="Model to use (default: the model that wrote the answer).",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Accept the template without asking.")
    ] = False,
) -> int:
    """Have a model write a template from a highly rated debate.

    Makes one model call."""
    from contend.cli.actions import templates as actions  # slow to import

    return actions.learn_from_debate(debate, model, yes=yes)
