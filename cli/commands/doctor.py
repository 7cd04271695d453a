"""Options of `contend doctor`."""

from dataclasses import asdict

from contend.cli.commands.options import Json
from contend.cli.exit_codes import FAILED, OK


def doctor(json: Json = False) -> int:
    """Check this installation and suggest fixes."""
    from contend.cli.actions.doctor import checks, print_checks  # slow to import
    from contend.cli.view.console import write_json

    findings = checks()
    if json:
        write_json([asdict(finding) for finding in findings])
    else:
        print_checks(findings)
    return FAILED if any(finding.level == "problem" for finding in findings) else OK
