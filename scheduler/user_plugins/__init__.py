"""Plugins of users: where their code is found, how it is loaded, and which there are.

What keeps them from doing harm lives in ``containment``, what tries them in ``plugin_trial``. What
a user's class is given belongs to :mod:`plugins`, when it runs to :mod:`scheduler.runtime`.

Nothing is imported here: the child process in which a plugin is tried needs the loader alone, and a
person waits for it.
"""
