"""``berth explain``: why a pod can or cannot run on each node, by the code of the live cycle.

This package explains one judgement as text or as JSON. Reading the cluster belongs to
:mod:`scheduler.offline`, comparing two policies to :mod:`scheduler.shadow`.
"""

from scheduler.explain.batch import Batch
from scheduler.explain.command import (
    ExplainError,
    ExplainOptions,
    add_dump_flag,
    read_objects,
    run_explain,
    warn_left_out,
)
from scheduler.explain.explanation import Explanation, Rejection, explain
from scheduler.explain.json_form import as_json
from scheduler.explain.ranking import NodeScores, Ranking
from scheduler.explain.text_form import as_text

__all__ = [
    "Batch",
    "ExplainError",
    "ExplainOptions",
    "Explanation",
    "NodeScores",
    "Ranking",
    "Rejection",
    "add_dump_flag",
    "as_json",
    "as_text",
    "explain",
    "read_objects",
    "run_explain",
    "warn_left_out",
]
