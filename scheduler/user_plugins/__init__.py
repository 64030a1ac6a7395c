"""Users' plugins: the sources of their code, the loader, and the catalogue of loaded plugins.

``containment`` protects the scheduler from faulty plugins, and ``plugin_trial`` tests plugins
before they are used. The interfaces of plugins belong to :mod:`plugins`, running them to
:mod:`scheduler.runtime`.

This file imports nothing: the child process of a trial needs only the loader, and a user waits
for it.
"""
