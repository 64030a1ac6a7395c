"""``berth ui``: a page on loopback about a cluster or a dump, for people.

The page lists the cluster with the kubeconfig of its user, so it opens no new door in the cluster,
and shows nobody more than they may read. It reads only. What it shows comes from two places:

    lists or dump -> Listing -> pending pods, nodes, the matrix of a pod     (own work)
    Sources       -> why, decisions, policies, what-if                       (the leader's, or own)

Explaining belongs to :mod:`scheduler.explain`, reading a cluster to :mod:`scheduler.offline`.
"""

from scheduler.ui.command import add_ui_command

__all__ = ["add_ui_command"]
