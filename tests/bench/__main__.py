"""Measurements, each a command of its own.

run        pods/s, start, CPU and memory on a real API server, beside kube-scheduler, in turn
latency    from a pod's creation to its binding, at a steady rate
attempts   what one attempt costs, as a share of its budget
decisions  decisions/s without an API server, and how their cost grows
variety    the CPU time of a cycle by how many kinds of requests come in turn
devices    the decision alone for pods with claims, against nodes, devices and claims
cycles     the time of a cycle beside 2 000 watch events a second
audit      what it costs a cycle that the cache is compared with the watches
lost       what it costs to look for events that watches have lost
measuring  what metrics cost a cycle, and what a scrape costs
memory     what a process takes that holds 150 000 bound pods
expensive  what pods that need more than their budget take from others
journal    what --journal costs: pods/s, and the time of a cycle, with and without it in turn
gpu        how much of a cluster's GPUs a policy can give away, by a published trace
hostile    how long others wait while one tenant is hostile, one spec after the other
mixed      a steady load beside many hostile objects
start      from the start of a process to its first binding, phase by phase
large      clusters of any size and pools of nodes, against a stand-in for an API server
soak       memory and tables of a process in which everything is fresh all the time
waking     how far the loop falls behind while pods start and thousands wait
tail       p50 and p99 and stalls of the loop, beside one disturbance after the other
report     tables and plots from the files that the others wrote
"""

from __future__ import annotations

import sys
from importlib import import_module

COMMANDS = {
    "run": "tests.bench.runs",
    "latency": "tests.bench.latency",
    "attempts": "tests.bench.attempt_costs",
    "decisions": "tests.bench.decisions",
    "variety": "tests.bench.variety",
    "devices": "tests.bench.device_decisions",
    "cycles": "tests.bench.cycles_under_load",
    "audit": "tests.bench.auditing",
    "lost": "tests.bench.looking",
    "measuring": "tests.bench.measuring",
    "memory": "tests.bench.memory",
    "expensive": "tests.bench.expensive_pods",
    "journal": "tests.bench.journal_cost",
    "gpu": "tests.bench.gpu",
    "hostile": "tests.bench.hostile",
    "mixed": "tests.bench.hostile_mixed",
    "large": "tests.bench.large",
    "start": "tests.bench.start",
    "soak": "tests.bench.soak",
    "waking": "tests.bench.waking",
    "tail": "tests.bench.tail",
    "report": "tests.bench.report",
}


def main(arguments: list[str]) -> int:
    """Hand over to a command."""
    if not arguments or arguments[0] not in COMMANDS:
        print(f"python -m tests.bench COMMAND [--help]\n\n{__doc__}", file=sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    # Not all of them: plots need no scheduler.
    status: int = import_module(COMMANDS[arguments[0]]).main(arguments[1:])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
