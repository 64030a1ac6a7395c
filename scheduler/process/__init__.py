"""The package manages the process: vital threads, event loop delay, memory, logging, version.

Its modules know nothing of scheduling.
"""
