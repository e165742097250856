"""A stream of losses, priced line by line as it arrives; it survives being killed.

`normalfan watch` is made of these parts. Signals and locks are those of Unix.
"""

from normalfan.watch.journal import open_journal
from normalfan.watch.rules import AlarmRule
from normalfan.watch.watcher import Watcher

__all__ = ["AlarmRule", "Watcher", "open_journal"]
