"""What would happen if: pods created, nodes drained, added or removed, another configuration.

A forecast is made over an offline cluster, which it changes, with the scheduling cycle and the
planner of groups themselves. Reading a cluster belongs to :mod:`scheduler.offline`; judging one
pod as the cluster is now to :mod:`scheduler.explain`.
"""

from scheduler.what_if.forecast import forecast
from scheduler.what_if.objects_of_text import objects_of_text
from scheduler.what_if.placer import DEFAULT_CPU_S
from scheduler.what_if.question import (
    AddedNodes,
    Question,
    QuestionError,
    decode_question,
    encode_question,
)
from scheduler.what_if.result import Forecast, forecast_json, without_names, without_others

__all__ = [
    "DEFAULT_CPU_S",
    "AddedNodes",
    "Forecast",
    "Question",
    "QuestionError",
    "decode_question",
    "encode_question",
    "forecast",
    "forecast_json",
    "objects_of_text",
    "without_names",
    "without_others",
]
