"""Names for steps, states and actions, so that answers use the user's own words."""

from __future__ import annotations

from dataclasses import dataclass

from normalfan.errors import InputError


@dataclass(frozen=True, slots=True, repr=False)
class Labels:
    """Names for steps, states and actions; what has none is called by its index.

    Examples
    --------
    >>> labels = Labels(states=("empty", "full"))
    >>> labels.state(1), labels.action(1)
    ('full', '1')
    """

    steps: tuple[str, ...] | None = None  # [H], all different
    states: tuple[str, ...] | None = None  # [S]
    actions: tuple[str, ...] | None = None  # [A]

    def __repr__(self) -> str:
        counts = ((kind, getattr(self, kind)) for kind in ("steps", "states", "actions"))
        return f"Labels({', '.join(f'{len(names)} {kind}' for kind, names in counts if names)})"

    def step(self, h: int) -> str:
        """The name, or the index as text."""
        return self.steps[h] if self.steps else str(h)

    def state(self, s: int) -> str:
        """The name, or the index as text."""
        return self.states[s] if self.states else str(s)

    def action(self, a: int) -> str:
        """The name, or the index as text."""
        return self.actions[a] if self.actions else str(a)


def check_labels(labels: Labels, shape: tuple[int, int, int]) -> None:
    """Refuse labels that do not name each index of a problem [H, S, A] exactly once."""
    for kind, size in zip(("steps", "states", "actions"), shape, strict=True):
        names = getattr(labels, kind)
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
