"""The state of a cluster from a dump or one list of a live API server, without the scheduler.

``berth explain`` and ``berth shadow`` use this package. Their reports belong to
:mod:`scheduler.explain` and :mod:`scheduler.shadow`.
"""
