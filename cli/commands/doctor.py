from dataclasses import asdict
from typing import Annotated

import typer

from contend.cli.commands.options import Json
from contend.cli.exit_codes import FAILED, OK


def doctor(
    json: Json = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also list package versions.")
    ] = False,
) -> int:
    """Check this installation, show which model would be used by default, and suggest fixes."""
    from contend.cli.actions.doctor import checks, print_checks  # slow to import
    from contend.cli.view.console import write_json

    findings = checks(verbose=verbose)
    if json:
        write_json([asdict(finding) for finding in findings])
    else:
        print_checks(findings)
    return FAILED if any(finding.level == "problem" for finding in findings) else OK
