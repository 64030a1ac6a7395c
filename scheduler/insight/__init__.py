"""Answers questions about the live scheduler: why a pod waits, what was decided, what waits.

The leader serves the answers over HTTPS under ``/insight/v1``. Each user gets what their own rights
to the API's resources allow; see :mod:`scheduler.insight.rights`. What has to be computed is
computed in a child process with a copy of the cluster, never on the scheduling thread.

Nothing is imported here: the modules that speak HTTP take long to import.
"""
