from langgraph.graph import END, START

from contend.graph.debate_graph import DebateGraph
from contend.graph.routing import after_statement, next_scheduled
from contend.graph.settings import ModeratedSettings
from contend.nodes.fact_check import fact_check
from contend.nodes.judge_continue import judge_continue
from contend.nodes.moderate import moderate
from contend.nodes.moderated.propose import propose
from contend.nodes.moderated.score import score
from contend.nodes.retrieve import retrieve
from contend.nodes.store import store
from contend.nodes.synthesize import synthesize

builder = DebateGraph(ModeratedSettings)
builder.add_sequence([retrieve, moderate])
builder.add_node(propose)
builder.add_node(fact_check)
builder.add_node(judge_continue)
builder.add_sequence([score, synthesize, store])
builder.add_edge(START, "retrieve")
builder.add_conditional_edges("moderate", next_scheduled)
builder.add_conditional_edges("propose", after_statement)
builder.add_conditional_edges("fact_check", next_scheduled)
builder.add_edge("judge_continue", "moderate")
builder.add_edge("store", END)

graph = builder.compile(name="moderated")
