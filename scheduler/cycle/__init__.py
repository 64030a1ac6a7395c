"""The cycles of a pod: scheduling cycle, binding cycle, and the handling of failures.

This package defines the order of the steps: snapshot, filters and scores, assume, reserve, permit,
bind, and the three ways in which an attempt fails (refused, undone, silent).
:mod:`scheduler.runtime` runs the plugins, :mod:`scheduler.api_writes` writes to the API server, and
:mod:`scheduler.queueing` orders the pods.
"""
