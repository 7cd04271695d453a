"""What a saver may load."""

import subprocess
import sys

_LISTED = """
from contend.graph.checkpoints import saver
from contend.graph.values import names_of_values
before = set(names_of_values())
import contend.graph.adversarial, contend.graph.forecast, contend.graph.forum
import contend.graph.moderated, contend.graph.refine, contend.debates.run
print(sorted(set(names_of_values()) - before))
"""


def test_a_saver_knows_every_value_before_a_graph_is_loaded() -> None:
    listed = subprocess.run(
        [sys.executable, "-c", _LISTED], check=True, capture_output=True, text=True
    )
    assert listed.stdout.strip() == "[]"
