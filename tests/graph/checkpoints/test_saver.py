import subprocess
import sys

_LISTED = """
from contend.graph.checkpoints import saver
from contend.graph.values import storable_types
before = set(storable_types())
import contend.graph.adversarial, contend.graph.forecast, contend.graph.forum
import contend.graph.moderated, contend.graph.refine, contend.debates.run
print(sorted(set(storable_types()) - before))
"""


def test_storable_types_are_registered_without_loading_a_graph() -> None:
    listed = subprocess.run(
        [sys.executable, "-c", _LISTED], check=True, capture_output=True, text=True
    )
    assert listed.stdout.strip() == "[]"
