"""The package serves HTTP: health, metrics and the state of the process.

Nothing is imported here: the modules that speak HTTP take a fifth of a second to import, for which
pods do not wait. The content of the pages is collected elsewhere: in :mod:`scheduler.metrics` and
:mod:`scheduler.debug`.
"""
