"""These tests use new processes, because this one has already imported the packages."""

import subprocess
import sys
from pathlib import Path

_DELAYED = "import sys; from contend.cli.late_imports import delay_imports; delay_imports(); "


def _print(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _DELAYED + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert not done.stderr
    return done.stdout.strip()


def test_importing_a_part_of_a_package_does_not_import_the_rest() -> None:
    code = "import openai.types.chat; print('openai.types.beta' in sys.modules)"
    assert _print(code) == "False"


def test_delayed_package_provides_every_name() -> None:
    code = (
        "import openai, langsmith.types, langgraph_sdk, langchain_openai as ours; "
        "from openai.types.responses import *; from langgraph_sdk import get_client; "
        "print(openai.types.batch.Batch.__name__, Response.__name__, "
        "openai.types.Model.__name__, ours.OpenAI.__name__, langsmith.types.Run.__name__)"
    )
    assert _print(code) == "Batch Response Model OpenAI Run"


def test_unknown_name_of_a_delayed_package_is_missing() -> None:
    code = "import openai; print(hasattr(openai.types, 'Nothing'), openai.types.Model.__name__)"
    assert _print(code) == "False Model"


def test_several_threads_can_trigger_a_delayed_import() -> None:
    code = (
        "import openai.types as types; from concurrent.futures import ThreadPoolExecutor as Pool; "
        "found = list(Pool(8).map(lambda _: types.Model, range(8))); print(len({*found}))"
    )
    assert _print(code) == "1"


def test_threads_that_wait_for_each_others_imports_do_not_deadlock(tmp_path: Path) -> None:
    files = {
        "events.py": "from threading import Event; importing, running = Event(), Event()",
        "__init__.py": "",
        "types/__init__.py": (
            "from big import events; events.running.set(); from big.models import Base"
        ),
        "models.py": (
            "from big import events, types; Base = 1; events.importing.set(); "
            "events.running.wait(); hasattr(types, 'Base')"
        ),
    }
    (tmp_path / "big" / "types").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / "big" / name).write_text(text)
    code = (
        f"sys.path.insert(0, {str(tmp_path)!r}); import contend.cli.late_imports as late; "
        "late._PACKAGES = {'big.types'}; from big import events, types; "
        "from importlib import import_module as load; from threading import Thread; "
        "other = Thread(target=load, args=['big.models'], daemon=True); other.start(); "
        "events.importing.wait(); print(types.Base); other.join()"
    )
    assert _print(code) == "1"
