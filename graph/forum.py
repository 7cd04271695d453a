from langgraph.graph import END, START

from contend.graph.debate_graph import DebateGraph
from contend.graph.routing import after_judging, after_speaking, after_writing
from contend.graph.settings import ForumSettings
from contend.nodes.conviction_check import conviction_check
from contend.nodes.judge_continue import judge_continue
from contend.nodes.propose import propose
from contend.nodes.retrieve import retrieve
from contend.nodes.score import score
from contend.nodes.store import store
from contend.nodes.synthesize import synthesize

builder = DebateGraph(ForumSettings)
builder.add_sequence([retrieve, propose])
builder.add_sequence([conviction_check, judge_continue])
builder.add_node(synthesize)
builder.add_sequence([score, store])
builder.add_edge(START, "retrieve")
builder.add_conditional_edges("propose", after_speaking)
builder.add_conditional_edges("judge_continue", after_judging)
builder.add_conditional_edges("synthesize", after_writing)
builder.add_edge("store", END)

graph = builder.compile(name="forum")
