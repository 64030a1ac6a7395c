"""Masks and scores that pods of one signature share.

A thousand pods of one deployment ask the same question, and between two of them one node changed.
So the answers of the plugins that sign the pod are kept, and only the rows that changed since are
asked about again: :mod:`scheduler.reuse.kept_verdicts` keeps them for one signature,
:mod:`scheduler.reuse.signature_reuse` finds them for a pod and asks the other plugins anew.
"""

from scheduler.reuse.signature_reuse import Placement, SignatureReuse

__all__ = ["Placement", "SignatureReuse"]
