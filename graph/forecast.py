from langgraph.graph import END, START

from contend.graph.contract import ForecastInput
from contend.graph.debate_graph import DebateGraph
from contend.graph.routing import after_arguing, after_asking, after_judging, after_scoring
from contend.graph.settings import ForecastSettings
from contend.nodes.forecast.critique import critique
from contend.nodes.forecast.outcomes import confirm_outcomes, find_outcomes
from contend.nodes.forecast.propose import propose
from contend.nodes.forecast.synthesize import synthesize
from contend.nodes.judge_continue import judge_continue
from contend.nodes.retrieve import retrieve
from contend.nodes.store import store

builder = DebateGraph(ForecastSettings, ForecastInput)
builder.add_sequence([find_outcomes, confirm_outcomes, retrieve, propose])
builder.add_node(critique)
builder.add_node(judge_continue)
builder.add_sequence([synthesize, store])
builder.add_conditional_edges(START, after_asking)
builder.add_conditional_edges("propose", after_arguing, ["critique", "propose"])
builder.add_conditional_edges("critique", after_scoring, ["judge_continue"])
builder.add_conditional_edges("judge_continue", after_judging)
builder.add_edge("store", END)

graph = builder.compile(name="forecast")
