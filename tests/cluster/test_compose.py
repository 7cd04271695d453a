"""Check the Docker files without running them."""

import importlib.util
import shlex
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from contend.cli.main import app
from contend.service.runs import _SECONDS_TO_STOP

ROOT = Path(__file__).parents[2]
# Commands of the images that are not ours.
_OF_IMAGES = {"redis-server", "redis-cli", "pg_isready"}
# Installed by the image, and not where the fast tests run.
_OF_WORKERS = {"aegra_api.main"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    text = (ROOT / "deploy" / "compose.yaml").read_text("utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_the_page_and_two_workers_share_one_image(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert {*services} == {"postgres", "redis", "worker1", "worker2", "page"}
    ours = [services[name] for name in ("worker1", "worker2", "page")]
    for each in ours:
        context = (ROOT / "deploy" / each["build"]["context"]).resolve()
        assert (context / each["build"]["dockerfile"]).is_file()
        assert each["environment"]["DATABASE_URL"] == ours[0]["environment"]["DATABASE_URL"]
        assert each["environment"]["CONTEND_SERVICE_TOKEN"]  # the network needs it
    for name, each in services.items():
        assert {*each.get("depends_on", {})} <= {*services} - {name}


def test_the_stop_grace_period_is_long_enough(compose: dict[str, Any]) -> None:
    allowed = compose["services"]["page"]["stop_grace_period"]
    assert int(allowed.removesuffix("s")) > _SECONDS_TO_STOP


def test_workers_require_the_token(compose: dict[str, Any]) -> None:
    for name in ("worker1", "worker2"):
        settings = compose["services"][name]["environment"]
        # `dev_auth` takes who reaches this address for a stranger.
        assert settings["LANGGRAPH_API_URL"] == f"http://{name}:{settings['PORT']}"
        assert "LANGGRAPH_STRICT_MSGPACK=true" in dockerfile()
        assert (ROOT / Path(settings["AEGRA_CONFIG"]).relative_to("/app")).is_file()


def test_every_command_in_the_compose_file_exists(compose: dict[str, Any]) -> None:
    commands = [each["command"] for each in compose["services"].values() if "command" in each]
    for each in compose["services"].values():
        commands += [each["healthcheck"]["test"][1:]] if "healthcheck" in each else []
    for command in commands:
        assert is_known(command), command


def is_known(command: list[str]) -> bool:
    match command:
        case ["python", "-m", module]:
            return module in _OF_WORKERS or importlib.util.find_spec(module) is not None
        case ["python", "-c", code]:
            return compile(code, "healthcheck", "exec") is not None
        case ["contend", name, *words]:
            (script,) = entry_points(group="console_scripts", name="contend")
            known = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
            options = {option for each in known.params for option in each.opts}
            return bool(script) and {word for word in words if word.startswith("--")} <= options
        case [name, *_]:
            return name in _OF_IMAGES
    return False


def test_constraint_files_in_the_dockerfile_exist() -> None:
    words = shlex.split(dockerfile().replace("\\\n", " "), comments=True)
    pins = [words[at + 1] for at, word in enumerate(words) if word == "-c"]
    assert pins == ["constraints.txt", "deploy/constraints.txt"]
    assert all((ROOT / each).is_file() for each in pins)
    assert "aegra-api" in words


def test_worker_constraints_do_not_overlap_with_ours() -> None:
    ours, theirs = (pinned(ROOT / name) for name in ("constraints.txt", "deploy/constraints.txt"))
    assert "aegra-api" in theirs
    assert {*ours} & {*theirs} == set()


def pinned(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text("utf-8").splitlines() if line[:1] not in ("", "#")]
    return dict(line.split("==") for line in lines)


def dockerfile() -> str:
    return (ROOT / "deploy" / "Dockerfile").read_text("utf-8")
