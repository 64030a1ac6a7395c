"""The package is the client of the API server: credentials, HTTP, limits, errors, typed calls.

Each module has one subject: credentials, TLS, HTTP/1.1, limits, error responses, paths. Which
requests are sent, and why, belongs to the packages above; watching changes belongs to
:mod:`scheduler.informers`.
"""
