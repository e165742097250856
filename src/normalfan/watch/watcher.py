"""The loop: a line in, a record out.

Rounds are priced in the order in which they arrive, each against the last one priced. Their numbers must
rise. A number that does not is that of a round sent again, and is skipped. A gap is allowed (numbers may be
dates, and a bad line leaves one); every record says, as `since`, which round it was priced against.

    >>> from normalfan.problem.mdp import MDP
    >>> import numpy as np
    >>> mdp, records = MDP(np.array([[0, 0]]), initial=0, horizon=1), []
    >>> watcher = Watcher(LineReader(mdp), Monitor(mdp), commit=lambda lines, _: records.append(lines))
    >>> lines = [b'{"round": 1, "loss": [[[0, 1]]]}', b'{"round": 1}', b'{"round": 2, "loss": [[[3, 1]]]}']
    >>> watcher.run(lines).summary()["total"], len(records), watcher.tally.bad_lines
    (2.0, 2, 1)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from normalfan.errors import InputError
from normalfan.pricing.monitor import Monitor
from normalfan.problem.arrays import FloatArray
from normalfan.watch.alarms import Rule
from normalfan.watch.lines import LineReader
from normalfan.watch.metrics import MetricsFile
from normalfan.watch.records import error_record, round_record
from normalfan.watch.tally import Progress, Tally


class Watcher:
    """Prices lines, and hands records to `commit` with the progress that they make.

    `complain` gets the record of each bad line, unless `strict`: then the first one is raised. `announce`
    gets a sentence for each alarm, before the record is committed: one that is raised by a process that
    dies is announced again by the next, and none is missed. `latency`: seconds for which a record may wait
    for others before it is committed; with 0 each is committed at once.
    """

    def __init__(
        self,
        reader: LineReader,
        monitor: Monitor,
        commit: Callable[[bytes, Progress], None],
        *,
        progress: Progress | None = None,
        rules: Sequence[Rule] = (),
        complain: Callable[[bytes], None] = lambda _: None,
        announce: Callable[[str], None] = lambda _: None,
        metrics: MetricsFile | None = None,
        strict: bool = False,
        latency: float = 0.0,
    ) -> None:
        self.reader = reader
        self.monitor = monitor
        self.rules = tuple(rules)
        self.strict = strict
        self.latency = latency
        self.tally = Tally(progress or Progress(), monitor.rounds, monitor.total)
        self._commit_records = commit
        self._complain = complain
        self._announce = announce
        self._metrics = metrics
        self._waiting: list[bytes] = []
        self._waiting_since = 0.0

    def run(self, lines: Iterable[bytes | None]) -> Tally:
        """Price every line; None between lines is a pause: no further line is waiting."""
        try:
            number = 0
            for line in lines:
                if line is not None:
                    number += 1
                    if line.strip():
                        self._take(number, line)
                if line is None or time.monotonic() - self._waiting_since >= self.latency:
                    self._commit()
        except InputError:
            self._finish()  # what was priced before the line that ends a strict watch counts
            raise
        self._finish()
        return self.tally

    def _take(self, number: int, line: bytes) -> None:
        try:
            read = self.reader.read(line)
            last = self.tally.progress.last_round
            if last is not None and read.round <= last:
                self.tally.skipped += 1
                return
            self._price(read.round, self.reader.loss(read))
        except InputError as error:
            self.tally.bad_lines += 1
            if self.strict:
                raise InputError(f"line {number}: {error}") from None
            self._complain(error_record(number, error))

    def _price(self, number: int, loss: FloatArray) -> None:
        tally, monitor = self.tally, self.monitor
        old, total_before = monitor.last_loss, monitor.total
        step = monitor.update(loss, number=number)
        raised = [str(r) for r in self.rules if r.raised_by(step, total_before, monitor.total)]
        record = round_record(
            monitor.mdp,
            step,
            since=tally.progress.last_round,
            total=monitor.total,
            alarms=raised,
            old=old,
            new=loss,
        )
        for rule in raised:
            self._announce(
                f"alarm {rule} in round {number}: price {step.price:.6g}, total {monitor.total:.6g}"
            )
        tally.progress = tally.progress.counting(number, crossed=step.crossed, alarms=len(raised))
        tally.rounds, tally.total = monitor.rounds, monitor.total
        tally.priced += 1
        tally.alarms += len(raised)
        tally.last_price, tally.last_value, tally.last_update = step.price, step.value, time.time()
        if not self._waiting:
            self._waiting_since = time.monotonic()
        self._waiting.append(record)

    def _commit(self) -> None:
        if self._waiting:
            records, self._waiting = b"".join(self._waiting), []
            self._commit_records(records, self.tally.progress)
        if self._metrics:
            self._metrics.write_if_due(self.tally)

    def _finish(self) -> None:
        self._commit()
        if self._metrics:
            self._metrics.write(self.tally)
