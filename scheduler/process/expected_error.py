"""The base of those errors that a person can correct."""

from __future__ import annotations


class ExpectedError(Exception):
    """A command cannot be carried out; the message is one sentence for a person.

    ``berth`` writes it to standard error and ends with status 1, without a traceback.
    """
