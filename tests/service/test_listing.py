"""Listing debates that another program ran on the same database."""

from starlette.testclient import TestClient

from contend.graph.checkpoints.saver import checkpointer
from tests.debates.test_checkpoint_threads import run_elsewhere
from tests.support.scripted import THREAD

DEBATES = "/api/v1/debates"


async def test_threads_of_other_servers_are_listed(client: TestClient) -> None:
    assert client.get(DEBATES).json()["debates"] == []
    async with checkpointer() as saver:
        await run_elsewhere(saver)
    (listed,) = client.get(DEBATES).json()["debates"]
    assert (listed["id"], listed["status"]) == (THREAD, "done")
    assert client.get(f"{DEBATES}/{THREAD}").json()["id"] == THREAD
