"""The loop: a line in, a record out.

Rounds are priced in the order in which they arrive, each against the last one priced. Their numbers must
rise. A number that does not is that of a round sent again, and is skipped; if it was one of the last
`REMEMBERED` rounds, its loss must be the same. A gap is allowed (numbers may be dates, and a bad line leaves
one); every record says, as `since`, which round it was priced against.

Lines that wait are priced as one block. Nothing depends on where a block ends: the numbers are the same to
the bit, and a block that is refused is priced line by line.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.pricing.monitor import Monitor, PricedRound
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP
from normalfan.ranges.reading import Tolerance
from normalfan.text import amount
from normalfan.watch.alarms import AlarmRule
from normalfan.watch.feed import LONGEST_LINE
from normalfan.watch.journal import Progress
from normalfan.watch.metrics import MetricsFile, Tally
from normalfan.watch.records import Line, LineReader, as_line, digest_of_round
from normalfan.watch.service import LiveRule, Served

if TYPE_CHECKING:
    from normalfan.replan.rules import StoredRule

REMEMBERED = 256

TOGETHER = 55  # lines of a block: with the round before, as many as a sweep prices at a time
TOGETHER_BYTES = 2**22  # of their losses: large problems gain nothing, and records should not wait


class Gathered(NamedTuple):
    """A line that waits to be priced."""

    line: int
    round: int
    loss: FloatArray
    of_rewards: bool
    wall: dict[str, Any] | None
    model: str
    problem: MDP


class LineModel(NamedTuple):
    """A model that lines may name, and the features that their coefficients multiply in it."""

    mdp: MDP
    features: Any = None
    feature_names: Sequence[str] = ()


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
    rewards : bool
        Whether `loss` and `theta` hold rewards, to be maximised.
    models : mapping of str to LineModel, optional
        The models that a line may name, and under "" the one of lines that name none.
    progress : Progress, optional
        What was counted before, if the monitor is a resumed one.
    rules : sequence of AlarmRule
        The alarm rules.
    rule : Accumulated, Cusum, SingleDay or Periodic, optional
        A rule of `normalfan.replan` that says when to replace the plan in service.
    known : {"before", "after"}
        Whether losses are known before acting, so that a new plan serves the round that called for it.
    tolerance : float or str, optional
        Say in every record which wall is nearest: the end of a feature's range, as `ranging` finds it.
    on_bad_line, on_alarm : callable
        Called with the error record of a bad line; with a sentence for an alarm or a re-plan, before the
        commit.
    unit : str
        Of the losses, in these sentences.
    metrics : MetricsFile, optional
        Kept up to date.
    strict : bool
        Raise an InputError at the first bad line.
    latency : float
        Seconds for which a record may wait for others to be committed with; 0: each is committed at once.
    longest : int
        Bytes that a line may have.
    pauses : bool
        None among the lines says when no further one is waiting; those that are, are priced together.

    Raises
    ------
    InputError
        If the features do not fit the problem, or they or the rule are not those of the progress; if there
        is a tolerance and there are no features.

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
        rewards: bool = False,
        models: Mapping[str, LineModel] | None = None,
        progress: Progress | None = None,
        rules: Sequence[AlarmRule] = (),
        rule: StoredRule | None = None,
        known: str = "before",
        tolerance: Tolerance | None = None,
        on_bad_line: Callable[[bytes], None] = lambda _: None,
        on_alarm: Callable[[str], None] = lambda _: None,
        unit: str = "",
        metrics: MetricsFile | None = None,
        strict: bool = False,
        latency: float = 0.0,
        longest: int = LONGEST_LINE,
        pauses: bool = False,
    ) -> None:
        self.monitor = monitor
        self.rules = tuple(rules)
        self.strict = strict
        self.latency = latency
        models = models or {"": LineModel(monitor.mdp, features, feature_names)}
        named = [name for name in models if name]
        self._readers = {
            name: LineReader(*model, longest, rewards=rewards, models=named) for name, model in models.items()
        }
        self._reader = self._readers[""]
        self._features = self._reader.digest_of_meaning()
        if named:
            meanings = {
                name: (one.mdp.fingerprint, one.digest_of_meaning()) for name, one in self._readers.items()
            }
            self._features += hashlib.sha256(repr(sorted(meanings.items())).encode()).hexdigest()
            if rule is not None:
                raise InputError(
                    "a rule is given with several models, but it holds a plan in one of them: leave out "
                    "--rule or --models."
                )
        self.tally = Tally(progress or Progress(rounds=monitor.rounds, total=monitor.total))
        if progress and progress.rounds and progress.features != self._features:
            raise InputError(
                "the features (or --rewards, or the models) are not those of the rounds priced before, but a "
                "watch resumes only with its own: give the same, or none as before, or two new paths to "
                "start again."
            )
        if tolerance is not None and self._reader.features is None:
            raise InputError(
                f"a range of {tolerance} is asked for without features, but distances to walls are measured "
                f"in their units: pass --features FILE."
            )
        self._tolerance = tolerance
        self._live = LiveRule(monitor.pricer, rule, known) if rule else None
        service = self.tally.progress.service
        before, now = service.rule if service else "none", self._live.name if self._live else "none"
        if self.tally.progress.rounds and before != now:
            raise InputError(
                f"the rule is {now} and was {before} for the rounds priced before, but a watch resumes only "
                f"with its own: give the same --rule and --known, or two new paths to start again."
            )
        if service:
            as_loss(monitor.mdp, service.loss, "the loss of the plan in service")
        self._commit_records = commit
        self._on_bad_line = on_bad_line
        self._on_alarm = on_alarm
        self._unit = unit
        self._metrics = metrics
        affordable = TOGETHER_BYTES // (8 * math.prod(monitor.mdp.shape))
        self._together = max(1, min(TOGETHER, affordable)) if pauses else 1
        self._gathered: list[Gathered] = []
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
                if line is None or len(self._gathered) >= self._together:
                    self._price_gathered()
                if line is None or time.monotonic() - self._waiting_since >= self.latency:
                    self._commit()
            self._price_gathered()
        except InputError:
            self._commit(final=True)
            raise
        self._commit(final=True)
        return self.tally

    def _take(self, number: int, line: bytes) -> None:
        try:
            read = self._reader.read(line)
        except InputError as error:
            self._refuse(number, error)
            return
        if self._gathered and read.round <= self._gathered[-1].round:
            self._price_gathered()  # only rounds that can be priced count as priced before
        try:
            last = self.tally.progress.last_round
            if last is not None and read.round <= last:
                self._check_repeated(read)
                self.tally.skipped += 1
            else:
                reader = self._readers[read.model]
                loss, of_rewards, wall = reader.loss(read), reader.is_of_rewards(read), None
                if self._tolerance is not None:
                    wall = reader.nearest_wall(read, self._tolerance, self.monitor.pricer.ties)
                one = Gathered(number, read.round, loss, of_rewards, wall, read.model, reader.mdp)
                self._gathered.append(one)
        except InputError as error:
            self._refuse(number, error)

    def _check_repeated(self, line: Line) -> None:
        priced = dict(self.tally.progress.recent).get(line.round)
        loss = self._readers[line.model].loss(line)
        if priced is not None and priced != digest_of_round(loss, line.model):
            raise InputError(
                f"round {line.round} comes again with another {line.key}, or of another model, but a round "
                f"that was priced stays as it was: give a correction a new number, or start again with new "
                f"paths."
            )

    def _refuse(self, number: int, error: InputError) -> None:
        self._price_gathered()  # the lines before it come first
        self.tally.bad_lines += 1
        self.tally.first_error = self.tally.first_error or f"line {number}: {error}"
        if self.strict:
            raise InputError(f"line {number}: {error}") from None
        self._on_bad_line(as_line({"line": number, "error": str(error)}))

    def _price_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        if not gathered:
            return
        before = dict(vars(self.monitor))
        numbers, losses = [one.round for one in gathered], [one.loss for one in gathered]
        served: list[Served | None] = [None] * len(gathered)
        try:
            priced = self.monitor.update_block(numbers, losses, [one.problem for one in gathered])
            if self._live:
                prices = [step.price for step, _ in priced]
                served[:] = self._live.follow(self.tally.progress.service, numbers, losses, prices)
        except InputError as error:
            vars(self.monitor).update(before)  # a round is priced in full or not at all
            if len(gathered) == 1:
                self._refuse(gathered[0].line, error)
                return
            for one in gathered:  # which of them is refused, and what the others cost without it
                self._gathered = [one]
                self._price_gathered()
            return
        for one, (step, total), service in zip(gathered, priced, served, strict=True):
            shown = replace(step, value=0.0 - step.value) if one.of_rewards else step
            self._record(shown, total, one, service)
        if time.monotonic() - self._waiting_since >= self.latency:
            self._commit()

    def _record(self, step: PricedRound, total: float, one: Gathered, served: Served | None) -> None:
        tally, before = self.tally, self.tally.progress
        raised = [str(rule) for rule in self.rules if rule.raised_by(step, before.total, total)]
        record: dict[str, Any] = {"round": step.round, "since": before.last_round}
        record |= {field.name: getattr(step, field.name) for field in fields(step) if field.name != "moved"}
        if len(self._readers) > 1:
            record |= {"model": one.model or None, "moved": step.moved and asdict(step.moved)}
        if (cell := step.costliest) is not None:
            record["costliest"] = {"step": cell.step, "state": cell.state, "action": cell.action}
            record["costliest"] |= {"best_action": cell.best_action, "price": cell.paid}
        record["total"] = total
        if self._tolerance is not None:
            record["wall"] = tally.last_wall = one.wall
        if raised:
            record["alarms"] = raised
        for rule in raised:
            price, cost = (amount(number, self._unit) for number in (step.price, total))
            self._on_alarm(f"alarm {rule} in round {step.round}: price {price}, total {cost}")
        if served:
            record["service"] = served.record
            if served.record["replan"]:
                tally.replans += 1
                self._announce_replan(step.round, served.record)
        tally.progress = Progress(
            last_round=step.round,
            rounds=before.rounds + 1,
            total=total,
            crossings=before.crossings + step.crossed,
            alarms=before.alarms + len(raised),
            features=self._features,
            recent=(*before.recent[1 - REMEMBERED :], (step.round, digest_of_round(one.loss, one.model))),
            service=served.service if served else None,
        )
        tally.priced += 1
        tally.alarms += len(raised)
        tally.last_price, tally.last_value, tally.last_update = step.price, step.value, time.time()
        if not self._waiting:
            self._waiting_since = time.monotonic()
        self._waiting.append(as_line(record))

    def _announce_replan(self, number: int, record: dict[str, Any]) -> None:
        old = record.get("replaced", record)  # known before acting, its price today is not paid
        price, cost = (amount(old[name], self._unit) for name in ("price", "cost"))
        verb = "would cost" if "replaced" in record else "cost"
        self._on_alarm(
            f"re-plan now: in round {number} the plan of round {old['since']} {verb} {price}; "
            f"it has cost {cost} since it entered service"
        )

    def _commit(self, *, final: bool = False) -> None:
        if self._waiting:
            records, self._waiting = b"".join(self._waiting), []
            self._commit_records(records, self.tally.progress)
        if self._metrics:
            self._metrics.write(self.tally, final=final)
