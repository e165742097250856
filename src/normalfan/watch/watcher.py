"""The loop: a line in, a record out.

Rounds are priced in the order in which they arrive, each against the last one priced. Their numbers must
rise. A number that does not is that of a round sent again, and is skipped; if it was one of the last
`REMEMBERED` rounds, its loss must be the same. A gap is allowed (numbers may be dates, and a bad line leaves
one); every record says, as `since`, which round it was priced against.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.pricing.monitor import Monitor
from normalfan.problem.arrays import FloatArray
from normalfan.watch.alarms import AlarmRule
from normalfan.watch.cells import CostliestCells
from normalfan.watch.feed import LONGEST_LINE
from normalfan.watch.journal import Progress
from normalfan.watch.metrics import MetricsFile, Tally
from normalfan.watch.records import Line, LineReader, digest_of_loss, error_record, round_record

REMEMBERED = 256


class Watcher:
    """Prices lines, and hands their records to `commit`.

    Parameters
    ----------
    monitor : Monitor
        Prices the rounds.
    commit : callable
        Called with records (bytes, whole lines) and the progress they make; `Journal.commit`, for example.
    features : array_like, optional
        [K, H, S, A], or scipy sparse [K, H·S·A]: what the coefficients `theta` of a line multiply.
    feature_names : sequence of str
        The names of the K features, for coefficients by name.
    progress : Progress, optional
        What was counted before, if the monitor is a resumed one.
    rules : sequence of AlarmRule
        The alarm rules.
    on_bad_line, on_alarm : callable
        Called with the error record of a bad line; with a sentence for an alarm, before its commit.
    metrics : MetricsFile, optional
        Kept up to date.
    strict : bool
        Raise an InputError at the first bad line.
    latency : float
        Seconds for which a record may wait for others to be committed with; 0: each is committed at once.
    longest : int
        Bytes that a line may have.

    Raises
    ------
    InputError
        If the features do not fit the problem, or are not those of the progress.

    Examples
    --------
    >>> from normalfan.problem.mdp import MDP
    >>> import numpy as np
    >>> mdp, records = MDP(np.array([[0, 0]]), initial=0, horizon=1), []
    >>> watcher = Watcher(Monitor(mdp), commit=lambda lines, _: records.append(lines))
    >>> watcher.run([b'{"round": 1, "loss": [[[0, 1]]]}', b'{"round": 2, "loss": [[[3, 1]]]}']).progress.total
    2.0
    """

    def __init__(
        self,
        monitor: Monitor,
        commit: Callable[[bytes, Progress], None],
        *,
        features: npt.ArrayLike | None = None,
        feature_names: Sequence[str] = (),
        progress: Progress | None = None,
        rules: Sequence[AlarmRule] = (),
        on_bad_line: Callable[[bytes], None] = lambda _: None,
        on_alarm: Callable[[str], None] = lambda _: None,
        metrics: MetricsFile | None = None,
        strict: bool = False,
        latency: float = 0.0,
        longest: int = LONGEST_LINE,
    ) -> None:
        self.monitor = monitor
        self.rules = tuple(rules)
        self.strict = strict
        self.latency = latency
        self._reader = LineReader(monitor.mdp, features, feature_names, longest)
        self._features = self._reader.digest_of_features()
        self.tally = Tally(progress or Progress(rounds=monitor.rounds, total=monitor.total))
        if progress and progress.rounds and progress.features != self._features:
            raise InputError(
                "the features are not those of the rounds priced before, but a watch resumes only with its "
                "own: give the same features (or none, as before), or two new paths to start again."
            )
        self._cells = CostliestCells(monitor.pricer.reader)
        self._commit_records = commit
        self._on_bad_line = on_bad_line
        self._on_alarm = on_alarm
        self._metrics = metrics
        self._waiting: list[bytes] = []
        self._waiting_since = 0.0

    def run(self, lines: Iterable[bytes | None]) -> Tally:
        """Price every line, and commit every record; None among the lines is a pause: commit what waits."""
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
            self._commit(final=True)
            raise
        self._commit(final=True)
        return self.tally

    def _take(self, number: int, line: bytes) -> None:
        try:
            read = self._reader.read(line)
            last = self.tally.progress.last_round
            if last is not None and read.round <= last:
                self._check_repeated(read)
                self.tally.skipped += 1
                return
            self._price(read.round, self._reader.loss(read))
        except InputError as error:
            self.tally.bad_lines += 1
            self.tally.first_error = self.tally.first_error or f"line {number}: {error}"
            if self.strict:
                raise InputError(f"line {number}: {error}") from None
            self._on_bad_line(error_record(number, error))

    def _check_repeated(self, line: Line) -> None:
        priced = dict(self.tally.progress.recent).get(line.round)
        if priced is not None and priced != digest_of_loss(self._reader.loss(line)):
            raise InputError(
                f"round {line.round} comes again with another {line.key}, but a round that was priced stays "
                f"as it was: give a correction a new number, or start again with new paths."
            )

    def _price(self, number: int, loss: FloatArray) -> None:
        tally, monitor = self.tally, self.monitor
        old, total_before = monitor.last_loss, monitor.total
        step = monitor.update(loss, number=number)
        total = monitor.total
        raised = [str(rule) for rule in self.rules if rule.raised_by(step, total_before, total)]
        costliest = self._cells.find(old, monitor.last_loss) if step.price > 0 else None
        since = tally.progress.last_round
        record = round_record(step, since=since, costliest=costliest, total=total, alarms=raised)
        for rule in raised:
            self._on_alarm(f"alarm {rule} in round {number}: price {step.price:.6g}, total {total:.6g}")
        tally.progress = Progress(
            last_round=number,
            rounds=monitor.rounds,
            total=total,
            crossings=tally.progress.crossings + step.crossed,
            alarms=tally.progress.alarms + len(raised),
            features=self._features,
            recent=(*tally.progress.recent[1 - REMEMBERED :], (number, digest_of_loss(loss))),
        )
        tally.priced += 1
        tally.alarms += len(raised)
        tally.last_price, tally.last_value, tally.last_update = step.price, step.value, time.time()
        if not self._waiting:
            self._waiting_since = time.monotonic()
        self._waiting.append(record)

    def _commit(self, *, final: bool = False) -> None:
        if self._waiting:
            records, self._waiting = b"".join(self._waiting), []
            self._commit_records(records, self.tally.progress)
        if self._metrics:
            self._metrics.write(self.tally, final=final)
