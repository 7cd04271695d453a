from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from contend.debates.tables import open_engine

_AT_ONCE, _FILES = 8, 60


def test_a_new_file_can_be_opened_by_many_connections_in_parallel(tmp_path: Path) -> None:
    together = Barrier(_AT_ONCE)

    def connect(path: Path) -> str:
        engine = open_engine(path)
        together.wait()
        with engine.connect() as connection:
            mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
        engine.dispose()
        return str(mode)

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for number in range(_FILES):
            path = tmp_path / f"{number}.db"
            assert {*threads.map(connect, [path] * _AT_ONCE)} == {"wal"}
