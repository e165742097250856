"""Shared fixtures. Random problems come from `problems`, independent answers from `oracles`."""

from __future__ import annotations

import numpy as np
import pytest
from compiling_first import compile_what_nobody_has_taken
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("default")


MANY = 1000  # tests that need about every kernel


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """In a run of all tests in several processes, share out among them what has to be compiled."""
    if hasattr(request.config, "workerinput") and len(request.session.items) > MANY:
        compile_what_nobody_has_taken(tmp_path_factory.getbasetemp().parent)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260629)
