"""Why a pod can or cannot run where: ``berth explain``, by the code of the live cycle."""

from scheduler.explain.batch import Batch
from scheduler.explain.cluster import Cluster, ClusterObjectError
from scheduler.explain.command import (
    ExplainError,
    ExplainOptions,
    read_objects,
    run_explain,
    warn_left_out,
)
from scheduler.explain.explanation import Explanation, NodeScores, Rejection, explain
from scheduler.explain.json_form import as_json
from scheduler.explain.offline import OfflineHandle, offline_framework
from scheduler.explain.text_form import as_text

__all__ = [
    "Batch",
    "Cluster",
    "ClusterObjectError",
    "ExplainError",
    "ExplainOptions",
    "Explanation",
    "NodeScores",
    "OfflineHandle",
    "Rejection",
    "as_json",
    "as_text",
    "explain",
    "offline_framework",
    "read_objects",
    "run_explain",
    "warn_left_out",
]
