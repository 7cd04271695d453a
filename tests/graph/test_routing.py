from contend.graph.adversarial import graph

# Checkpoints store these names. Renaming one strands every paused debate: add, never rename.
FROZEN_NODES = {"retrieve", "propose", "critique", "judge_continue", "synthesize", "score", "store"}


def test_node_names_are_unchanged() -> None:
    assert set(graph.get_graph().nodes) == FROZEN_NODES | {"__start__", "__end__"}


def test_graph_has_the_designed_edges() -> None:
    edges = {(edge.source, edge.target, edge.conditional) for edge in graph.get_graph().edges}
    assert edges == {
        ("__start__", "retrieve", False),
        ("retrieve", "propose", False),
        ("propose", "critique", False),
        ("critique", "judge_continue", False),
        ("judge_continue", "propose", True),
        ("judge_continue", "synthesize", True),
        ("synthesize", "score", False),
        ("score", "store", False),
        ("store", "__end__", False),
    }
