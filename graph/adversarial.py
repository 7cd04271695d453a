"""Builds the adversarial graph, in which a Skeptic attacks the Proposer's answer."""

from langgraph.graph import END, START, StateGraph

from contend.graph.channels import GraphState
from contend.graph.routing import after_judging
from contend.graph.settings import AdversarialSettings
from contend.graph.state import DebateInput
from contend.nodes.critique import critique
from contend.nodes.judge_continue import judge_continue
from contend.nodes.propose import propose
from contend.nodes.retrieve import retrieve
from contend.nodes.score import score
from contend.nodes.store import store
from contend.nodes.synthesize import synthesize

builder = StateGraph(GraphState, context_schema=AdversarialSettings, input_schema=DebateInput)
builder.add_sequence([retrieve, propose, critique, judge_continue])
builder.add_sequence([synthesize, score, store])
builder.add_edge(START, "retrieve")
builder.add_conditional_edges("judge_continue", after_judging)
builder.add_edge("store", END)

graph = builder.compile(name="adversarial")
