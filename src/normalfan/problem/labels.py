"""Names for steps, states and actions, so that answers can speak as the user does.

Labels take no part in any computation. What has none is called by its index.

    >>> labels = Labels(states=("empty", "full"))
    >>> labels.state(1), labels.action(1)
    ('full', '1')
"""

from __future__ import annotations

from dataclasses import dataclass

from normalfan.errors import InputError


@dataclass(frozen=True, slots=True)
class Labels:
    """Names in the order of the indices; None where indices will do."""

    steps: tuple[str, ...] | None = None  # [H]
    states: tuple[str, ...] | None = None  # [S]
    actions: tuple[str, ...] | None = None  # [A]

    def step(self, h: int) -> str:
        return self.steps[h] if self.steps else str(h)

    def state(self, s: int) -> str:
        return self.states[s] if self.states else str(s)

    def action(self, a: int) -> str:
        return self.actions[a] if self.actions else str(a)

    def check(self, shape: tuple[int, int, int]) -> None:
        """Refuse labels that do not name each index of a problem [H, S, A] exactly once."""
        for kind, size in zip(("steps", "states", "actions"), shape, strict=True):
            names = getattr(self, kind)
            if names is None:
                continue
            if len(names) != size:
                raise InputError(
                    f"labels.{kind} hold {len(names)} names, but the problem has {size} {kind}: "
                    f"give one name for each."
                )
            if len(set(names)) != size:
                again = next(i for i, name in enumerate(names) if name in names[:i])
                raise InputError(
                    f"labels.{kind}[{again}] is {names[again]!r}, but that name is taken by index "
                    f"{names.index(names[again])}: names must differ."
                )
