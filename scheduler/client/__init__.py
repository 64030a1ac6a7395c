"""The API server as seen from the scheduler: credentials, HTTP, limits, errors, typed calls.

One module knows one thing: credentials, TLS, HTTP/1.1, limits, refusals, paths. What is asked
and why belongs to the rooms above; keeping up with changes belongs to :mod:`scheduler.informers`.
"""
