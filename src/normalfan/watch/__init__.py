"""A stream of losses, priced line by line as it arrives; it survives being killed.

`normalfan watch` is made of these parts, and another program can use them in the same way:

    with open_journal(mdp, "state.npz", "prices.jsonl") as journal, open_feed(source) as feed:
        Watcher(journal.monitor, journal.commit, progress=journal.progress).run(feed)

Signals and locks are those of Unix.
"""

from normalfan.watch.alarms import AlarmRule
from normalfan.watch.feed import open_feed
from normalfan.watch.journal import open_journal, read_progress
from normalfan.watch.metrics import MetricsFile
from normalfan.watch.watcher import Watcher

__all__ = ["AlarmRule", "MetricsFile", "Watcher", "open_feed", "open_journal", "read_progress"]
