"""One pod's way from the queue to its node: scheduling cycle, binding cycle, and what follows.

Here the order of things is decided: snapshot, filters and scores, assume, reserve, permit, bind,
and the three ways back (refused, undone, silent). How plugins are run belongs to
:mod:`scheduler.runtime`, what is written to :mod:`scheduler.api_writes`, and the order of pods to
:mod:`scheduler.queueing`.
"""
