from contend.cli.commands import options


def mcp(
    model: options.Model = None,
    assignments: options.Assignments = None,
    config: options.Config = None,
) -> None:
    """Serve debates as MCP tools over stdin and stdout, for Claude Desktop, Cursor and others."""
    from contend.cli.actions.mcp import serve_tools  # slow to import
    from contend.debates.settings_sources import parse_assignments
    from contend.service.options import ServiceOptions

    flags = parse_assignments(assignments or [])
    serve_tools(ServiceOptions(model, flags, config, resumes_debates=False))
