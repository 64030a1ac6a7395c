"""The view of what-if: a form, and the forecast below it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from scheduler.what_if import QuestionError
from scheduler.what_if.objects_of_text import objects_of_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.ui.sources import Forecast

FIELDS: Final = ("objects", "replicas", "drain", "remove", "add", "like", "config", "pending")

EXAMPLE: Final = """\
apiVersion: v1
kind: Pod
metadata:
  name: trial
spec:
  schedulerName: berth
  containers:
  - name: main
    image: app
    resources:
      requests:
        cpu: "2"
        memory: 4Gi
"""

MAX_ROWS: Final = 15
"""How many nodes, pods and reasons each table of a forecast shows."""

_NAMES: Final = re.compile(r"[\s,]+")

_TITLES: Final = {
    "pending": "Pending pods",
    "removed": "Successors of the pods of removed nodes",
    "drained": "Successors of evicted pods",
    "pods": "New pods",
    "group": "Group of pods",
    "preempted": "Successors of preempted pods",
    "config": "Running pods by the new configuration",
}


def filled(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each field of the form; empty where there is none."""
    return {field: str(values.get(field, "")) for field in FIELDS}


def question_of(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the question that a form asks.

    Raises
    ------
    QuestionError
        When a field cannot be read; names the field.
    """
    question: dict[str, Any] = {}
    if form["objects"].strip():
        question["objects"] = [raw for raw, _ in objects_of_text(form["objects"], "objects")]
        if form["replicas"].strip():
            question["replicas"] = _number("replicas", form["replicas"])
    for field in ("drain", "remove"):
        names = [name for name in _NAMES.split(form[field]) if name]
        if names:
            question[field] = names
    if form["add"].strip() or form["like"].strip():
        count, like = _number("add", form["add"] or "1"), form["like"].strip()
        if not like:
            raise QuestionError("like", "which node are the new ones like?")
        question["add"] = [{"like": like, "count": count}]
    if form["config"].strip():
        question["config"] = form["config"]
    if form["pending"]:
        question["pending"] = True
    return question


def _number(field: str, text: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise QuestionError(field, f"{text[:40]!r} is not a number")
    return int(text)


def form_page(form: Mapping[str, str], problem: str = "") -> dict[str, Any]:
    """Return what the template of the form shows without a forecast."""
    return {"form": form, "problem": problem, "forecast": None, "example": EXAMPLE}


def forecast_page(form: Mapping[str, str], answer: Forecast) -> dict[str, Any]:
    """Return what the template shows of a forecast: counts whole, lists up to ``MAX_ROWS``."""
    forecast = answer.data
    parts = [
        {
            **part,
            "title": _TITLES.get(part["kind"], part["kind"]),
            "top": sorted(part["nodes"].items(), key=lambda item: (-item[1], item[0]))[:MAX_ROWS],
        }
        for part in forecast.get("parts", ())
    ]
    shown = {
        "undecided": 0,
        "drains": (),
        "budgets": (),
        "preempted": (),
        "notes": (),
        "outOfTime": False,
    }
    return {
        "form": form,
        "problem": "",
        "answer": answer,
        "forecast": {**shown, **forecast, "parts": parts},
        "example": EXAMPLE,
        "max_rows": MAX_ROWS,
    }
