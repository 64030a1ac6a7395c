"""A cluster built from a dump or from one look at a live API server, without a running scheduler.

Used by ``berth explain`` and ``berth shadow``. What they report belongs to
:mod:`scheduler.explain` and :mod:`scheduler.shadow`.
"""
