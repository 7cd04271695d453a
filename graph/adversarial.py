from langgraph.graph import END, START

from contend.graph.debate_graph import DebateGraph
from contend.graph.routing import after_judging
from contend.graph.settings import AdversarialSettings
from contend.nodes.critique import critique
from contend.nodes.judge_continue import judge_continue
from contend.nodes.propose import propose
from contend.nodes.retrieve import retrieve
from contend.nodes.score import score
from contend.nodes.store import store
from contend.nodes.synthesize import synthesize

builder = DebateGraph(AdversarialSettings)
builder.add_sequence([retrieve, propose, critique, judge_continue])
builder.add_sequence([synthesize, score, store])
builder.add_edge(START, "retrieve")
builder.add_conditional_edges("judge_continue", after_judging)
builder.add_edge("store", END)

graph = builder.compile(name="adversarial")
