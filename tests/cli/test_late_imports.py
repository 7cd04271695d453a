"""Tests in new processes, because this one has imported the packages already."""

import subprocess
import sys

_DELAYED = "import sys; from contend.cli.late_imports import delay_imports; delay_imports(); "


def _print(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _DELAYED + code], capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return done.stdout.strip()


def test_importing_a_part_of_a_package_does_not_import_the_rest() -> None:
    code = "import openai.types.chat; print('openai.types.beta' in sys.modules)"
    assert _print(code) == "False"


def test_every_name_of_a_package_is_found_when_it_is_used() -> None:
    code = (
        "import openai, langsmith.types, langgraph_sdk, langchain_openai as ours; "
        "from openai.types.responses import *; from langgraph_sdk import get_client; "
        "print(openai.types.batch.Batch.__name__, Response.__name__, "
        "openai.types.Model.__name__, ours.OpenAI.__name__, langsmith.types.Run.__name__)"
    )
    assert _print(code) == "Batch Response Model OpenAI Run"


def test_a_name_that_a_package_does_not_have_is_refused() -> None:
    code = "import openai; print(hasattr(openai.types, 'Nothing'), openai.types.Model.__name__)"
    assert _print(code) == "False Model"


def test_several_threads_can_use_a_package_first() -> None:
    code = (
        "import openai.types as types; from concurrent.futures import ThreadPoolExecutor as Pool; "
        "found = list(Pool(8).map(lambda _: types.Model, range(8))); print(len({*found}))"
    )
    assert _print(code) == "1"
