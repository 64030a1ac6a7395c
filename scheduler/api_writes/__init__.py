"""The package writes to the API server: bindings, evictions, Events, pod statuses and volumes.

Each module sends one kind of write and determines its result. What to write is decided elsewhere:
in the scheduling and binding cycles. Sending a request belongs to :mod:`scheduler.client`.
"""
