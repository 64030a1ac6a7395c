"""Why a pod can or cannot run where: ``berth explain``, by the code of the live cycle.

Explains one verdict to a person or as JSON. The cluster that it is about comes from
:mod:`scheduler.offline`; comparing two policies belongs to :mod:`scheduler.shadow`.
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
from scheduler.explain.explanation import Explanation, NodeScores, Rejection, explain
from scheduler.explain.json_form import as_json
from scheduler.explain.text_form import as_text

__all__ = [
    "Batch",
    "ExplainError",
    "ExplainOptions",
    "Explanation",
    "NodeScores",
    "Rejection",
    "add_dump_flag",
    "as_json",
    "as_text",
    "explain",
    "read_objects",
    "run_explain",
    "warn_left_out",
]
