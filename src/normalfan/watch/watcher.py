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
from dataclasses import KW_ONLY, asdict, dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.pricing.monitor import Monitor, PricedRound
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import as_loss
from normalfan.ranges.reading import Tolerance
from normalfan.text import amount
from normalfan.watch.journal import Progress
from normalfan.watch.lines import LONGEST_LINE, Line, LineModel, as_line, digest_of_round, read_line
from normalfan.watch.metrics import MetricsFile, Tally
from normalfan.watch.rules import AlarmRule, LiveRule, Served, Service

if TYPE_CHECKING:
    from normalfan.replan.rules import StoredRule

REMEMBERED = 256

TOGETHER = 55  # lines of a block: with the round before, as many as a sweep prices at a time
TOGETHER_BYTES = 2**22  # of their losses: large problems gain nothing, and records should not wait


class Gathered(NamedTuple):
    """A line that waits to be priced."""

    number: int
    line: Line
    loss: FloatArray
    wall: dict[str, Any] | None


@dataclass(eq=False, repr=False)
class Watcher:
    """Prices lines, and hands their records to `commit`.

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

    monitor: Monitor  # prices the rounds
    commit: Callable[[bytes, Progress], None]  # called with records, whole lines, and the progress they make
    _: KW_ONLY
    features: npt.ArrayLike | None = None  # [K, H, S, A], or sparse [K, H·S·A]: what `theta` multiplies
    feature_names: Sequence[str] = ()  # [K] for coefficients by name
    rewards: bool = False  # `loss` and `theta` hold rewards, to be maximised
    models: Mapping[str, LineModel] | None = None  # that a line may name; "": of lines that name none
    progress: Progress | None = None  # what was counted before, if the monitor is a resumed one
    rules: Sequence[AlarmRule] = ()  # which raise an alarm
    rule: StoredRule | None = None  # of `normalfan.replan`: when to replace the plan in service
    known: str = "before"  # or "after" acting: then a new plan serves from the next round on
    tolerance: Tolerance | None = None  # every record says how far the nearest wall is, as `ranging` finds it
    on_bad_line: Callable[[bytes], None] = lambda _: None  # called with the error record
    on_alarm: Callable[[str], None] = lambda _: None  # with a sentence, also for a re-plan, before the commit
    unit: str = ""  # of the losses, in these sentences
    metrics: MetricsFile | None = None  # kept up to date
    strict: bool = False  # raise an InputError at the first bad line
    latency: float = 0.0  # seconds that a record may wait for others to be committed with
    longest: int = LONGEST_LINE  # bytes that a line may have
    pauses: bool = False  # None among the lines says that none is waiting; those that are, go together

    def __post_init__(self) -> None:
        mdp, progress = self.monitor.mdp, self.progress
        self._models = self.models or {"": LineModel(mdp, self.features, self.feature_names)}
        named = [name for name in self._models if name]
        self._read = partial(read_line, longest=self.longest, models=named, rewards=self.rewards)
        meanings = {name: one.digest_of_meaning(rewards=self.rewards) for name, one in self._models.items()}
        self._meaning = meanings[""]
        if named:
            models_of_lines = sorted(
                (name, (self._models[name].mdp.fingerprint, meaning)) for name, meaning in meanings.items()
            )
            self._meaning += hashlib.sha256(repr(models_of_lines).encode()).hexdigest()
            if self.rule is not None:
                raise InputError(
                    "a rule is given with several models, but it holds a plan in one of them: leave out "
                    "--rule or --models."
                )
        if progress and progress.rounds and progress.features != self._meaning:
            raise InputError(
                "the features (or --rewards, or the models) are not those of the rounds priced before, but a "
                "watch resumes only with its own: give the same, or none as before, or two new paths to "
                "start again."
            )
        if self.tolerance is not None and self._models[""].features is None:
            raise InputError(
                f"a range of {self.tolerance} is asked for without features, but distances to walls are "
                f"measured in their units: pass --features FILE."
            )
        self.tally = Tally(progress or Progress(rounds=self.monitor.rounds, total=self.monitor.total))
        self._live = LiveRule(self.monitor.pricer, self.rule, self.known) if self.rule else None
        service = self.tally.progress.service
        before, now = service.rule if service else "none", self._live.name if self._live else "none"
        if self.tally.progress.rounds and before != now:
            raise InputError(
                f"the rule is {now} and was {before} for the rounds priced before, but a watch resumes only "
                f"with its own: give the same --rule and --known, or two new paths to start again."
            )
        if service:
            as_loss(mdp, service.loss, "the loss of the plan in service")
        affordable = TOGETHER_BYTES // (8 * math.prod(mdp.shape))
        self._together = max(1, min(TOGETHER, affordable)) if self.pauses else 1
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
            read = self._read(line)
        except InputError as error:
            self._refuse(number, error)
            return
        if self._gathered and read.round <= self._gathered[-1].line.round:
            self._price_gathered()  # only rounds that can be priced count as priced before
        try:
            model, wall = self._models[read.model], None
            loss, progress = model.loss(read), self.tally.progress
            if progress.last_round is not None and read.round <= progress.last_round:
                digest = digest_of_round(loss, read.model)
                if dict(progress.recent).get(read.round, digest) != digest:
                    raise InputError(
                        f"round {read.round} comes again with another {read.key}, or of another model, but a "
                        f"round that was priced stays as it was: give a correction a new number, or start "
                        f"again with new paths."
                    )
                self.tally.skipped += 1
                return
            if self.tolerance is not None:
                wall = model.nearest_wall(read, self.tolerance, self.monitor.pricer.ties)
            self._gathered.append(Gathered(number, read, loss, wall))
        except InputError as error:
            self._refuse(number, error)

    def _refuse(self, number: int, error: InputError) -> None:
        self._price_gathered()  # the lines before it come first
        self.tally.bad_lines += 1
        self.tally.first_error = self.tally.first_error or f"line {number}: {error}"
        if self.strict:
            raise InputError(f"line {number}: {error}") from None
        self.on_bad_line(as_line({"line": number, "error": str(error)}))

    def _price_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        if not gathered:
            return
        before = dict(vars(self.monitor))
        numbers, losses = [one.line.round for one in gathered], [one.loss for one in gathered]
        problems = [self._models[one.line.model].mdp for one in gathered]
        served: list[Served] = [({}, None)] * len(gathered)
        try:
            priced = self.monitor.update_block(numbers, losses, problems)
            if self._live:
                prices = [step.price for step, _ in priced]
                served[:] = self._live.follow(self.tally.progress.service, numbers, losses, prices)
        except InputError as error:
            vars(self.monitor).update(before)  # a round is priced in full or not at all
            if len(gathered) == 1:
                self._refuse(gathered[0].number, error)
                return
            for one in gathered:  # which of them is refused, and what the others cost without it
                self._gathered = [one]
                self._price_gathered()
            return
        for one, (step, total), in_service in zip(gathered, priced, served, strict=True):
            shown = replace(step, value=0.0 - step.value) if one.line.of_rewards else step
            self._record(shown, total, one, *in_service)
        if time.monotonic() - self._waiting_since >= self.latency:
            self._commit()

    def _record(
        self, step: PricedRound, total: float, one: Gathered, told: dict[str, Any], service: Service | None
    ) -> None:
        tally, before = self.tally, self.tally.progress
        raised = [str(rule) for rule in self.rules if rule.raised_by(step, before.total, total)]
        record: dict[str, Any] = {"round": step.round, "since": before.last_round}
        record |= {field.name: getattr(step, field.name) for field in fields(step) if field.name != "moved"}
        if len(self._models) > 1:
            record |= {"model": one.line.model or None, "moved": step.moved and asdict(step.moved)}
        if (cell := step.costliest) is not None:
            record["costliest"] = {"step": cell.step, "state": cell.state, "action": cell.action}
            record["costliest"] |= {"best_action": cell.best_action, "price": cell.paid}
        record["total"] = total
        if self.tolerance is not None:
            record["wall"] = tally.last_wall = one.wall
        if raised:
            record["alarms"] = raised
        for rule in raised:
            price, cost = (amount(number, self.unit) for number in (step.price, total))
            self.on_alarm(f"alarm {rule} in round {step.round}: price {price}, total {cost}")
        if service:
            record["service"] = told
            if told["replan"]:
                tally.replans += 1
                self._announce_replan(step.round, told)
        tally.progress = Progress(
            last_round=step.round,
            rounds=before.rounds + 1,
            total=total,
            crossings=before.crossings + step.crossed,
            alarms=before.alarms + len(raised),
            features=self._meaning,
            recent=(
                *before.recent[1 - REMEMBERED :],
                (step.round, digest_of_round(one.loss, one.line.model)),
            ),
            service=service,
        )
        tally.priced += 1
        tally.alarms += len(raised)
        tally.last_price, tally.last_value, tally.last_update = step.price, step.value, time.time()
        if not self._waiting:
            self._waiting_since = time.monotonic()
        self._waiting.append(as_line(record))

    def _announce_replan(self, number: int, record: dict[str, Any]) -> None:
        old = record.get("replaced", record)  # known before acting, its price today is not paid
        price, cost = (amount(old[name], self.unit) for name in ("price", "cost"))
        verb = "would cost" if "replaced" in record else "cost"
        self.on_alarm(
            f"re-plan now: in round {number} the plan of round {old['since']} {verb} {price}; "
            f"it has cost {cost} since it entered service"
        )

    def _commit(self, *, final: bool = False) -> None:
        if self._waiting:
            records, self._waiting = b"".join(self._waiting), []
            self.commit(records, self.tally.progress)
        if self.metrics:
            self.metrics.write(self.tally, final=final)
