"""The process: threads that must not die, the event loop's delay, memory, logging, version.

Leaves that know nothing of scheduling.
"""
