import struct
from pathlib import Path

import pytest

from contend.models.providers.gguf import Header, read_header
from tests.models.providers.test_embedded import DAMAGED


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def tensor(name: bytes, *dimensions: int) -> bytes:
    sizes = struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions)
    return text(name) + sizes + struct.pack("<IQ", 0, 0)


def test_counts_the_parameters_of_all_tensors(tmp_path: Path) -> None:
    path = tmp_path / "some.gguf"
    words = text(b"tokens") + struct.pack("<IIQ", 9, 8, 2) + text(b"a") + text(b"bc")
    numbers = text(b"scores") + struct.pack("<IIQ", 9, 6, 2) + bytes(8)
    context = text(b"llama.context_length") + struct.pack("<II", 4, 2048)
    values = words + numbers + context
    tensors = tensor(b"first", 1000, 300) + tensor(b"second", 7)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 2, 3) + values + tensors)
    assert read_header(path) == Header(parameters=300_007, context_tokens=2048)


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "some.gguf"
    for size in (5, 600):
        head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + tensor(b"first", size)
        path.write_bytes(head + bytes(size))
        assert read_header(path).parameters == size


@pytest.mark.parametrize("content", [*DAMAGED.values(), b"", b"ELF"])
def test_a_damaged_header_has_no_parameter_count(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some.gguf"
    path.write_bytes(content)
    assert read_header(path).parameters is None
