from contend.cli.actions.replay import show_events
from contend.cli.exit_codes import OK
from contend.cli.view.console import stdout
from contend.cli.view.format import plain
from contend.cli.view.renderer import Renderer
from contend.debates.cassettes import Cassette, shipped_cassette

_NEXT = 'Ask your own question: contend ask "...". `contend doctor` says which models you can use.'


def play_demo(speed: float, *, is_raw: bool) -> int:
    cassette, screen = shipped_cassette(), stdout(widest=None)
    screen.print(_first_line(cassette, speed), style="warning", markup=False)
    screen.print()
    renderer = Renderer(screen, is_raw=is_raw)
    show_events(cassette.events, renderer, cassette.debate, speed)
    screen.print()
    screen.print(_NEXT, markup=False)
    return OK


def _first_line(cassette: Cassette, speed: float) -> str:
    debate = cassette.debate
    models = ", ".join(dict.fromkeys(turn.model for turn in debate.turns if turn.model))
    return plain(
        f"This is a recording: {models} wrote every word on {debate.created_at[:10]}. It is played "
        f"{speed:g} times as fast as the original, and no model is called. Larger models argue "
        "much better."
    )
