"""What berth answers over HTTP: health, metrics, and how it stands.

Nothing is imported here: the modules that speak HTTP take a fifth of a second to import, for which
pods do not wait. What the pages say is collected elsewhere: in :mod:`scheduler.metrics` and
:mod:`scheduler.debug`.
"""
