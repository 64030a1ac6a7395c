"""The journal: what the scheduler knew and decided, written so that it can be decided again.

:class:`Journal` collects entries from the scheduler's threads, :class:`JournalWriter` writes them.
The commands ``berth replay`` and ``berth journal redact`` read them. Nothing here changes what is
decided, but for the choice among equal nodes: see :mod:`scheduler.journal.ties`.
"""

from scheduler.journal.opening import open_journal
from scheduler.journal.options import JournalOptions
from scheduler.journal.recorder import Journal
from scheduler.journal.writer import JournalWriter

__all__ = ["Journal", "JournalOptions", "JournalWriter", "open_journal"]
