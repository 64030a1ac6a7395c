"""The API server as seen from the scheduler: credentials, HTTP, limits, errors, typed calls."""
