"""Writes to the API server: bindings, evictions, Events, pod statuses and volumes.

Each module sends one kind of write and finds out what became of it. What to write is decided
elsewhere: in the scheduling and binding cycles. How a request travels belongs to
:mod:`scheduler.client`.
"""
