from langgraph.graph import END, START

from contend.graph.debate_graph import DebateGraph
from contend.graph.routing import after_answering
from contend.graph.settings import RefineSettings
from contend.nodes.critique import critique
from contend.nodes.judge_continue import judge_continue
from contend.nodes.propose import propose
from contend.nodes.retrieve import retrieve
from contend.nodes.score import score
from contend.nodes.store import store
from contend.nodes.synthesize import synthesize

builder = DebateGraph(RefineSettings)
builder.add_sequence([retrieve, propose, judge_continue])
builder.add_node(critique)
builder.add_sequence([synthesize, score, store])
builder.add_edge(START, "retrieve")
builder.add_conditional_edges("judge_continue", after_answering)
builder.add_edge("critique", "propose")
builder.add_edge("store", END)

graph = builder.compile(name="refine")
