"""A problem as named arrays, as it is stored in `.npz` files: schema, horizon, initial, and one of

    dense [K, S, A, S],   nexts [K, S, A],   indptr [K, S·A + 1] with the indices and weights of all kernels,

K = 1 for stationary transitions, else H; where there are names, step_labels, state_labels, action_labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.problem.labels import Labels
from normalfan.problem.mdp import MDP
from normalfan.problem.transitions import Dense, Deterministic, check_compressed

SCHEMA = 1

_LABELS = {"steps": "step_labels", "states": "state_labels", "actions": "action_labels"}


def mdp_to_arrays(mdp: MDP) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {
        "schema": np.array(SCHEMA),
        "horizon": np.array(mdp.horizon),
        "initial": mdp.initial,
    }
    match mdp.transitions:
        case Dense(kernels=kernels):
            arrays["dense"] = kernels
        case Deterministic(nexts=nexts):
            arrays["nexts"] = nexts
        case transitions:
            matrices = [transitions.csr(k) for k in range(transitions.n_kernels)]
            arrays["indptr"] = np.stack([matrix.indptr for matrix in matrices]).astype(np.int64)
            arrays["indices"] = np.concatenate([matrix.indices for matrix in matrices])
            arrays["weights"] = np.concatenate([matrix.data for matrix in matrices])
    names = {kind: getattr(mdp.labels, kind) for kind in _LABELS}
    return arrays | {_LABELS[kind]: np.array(given) for kind, given in names.items() if given}


def mdp_from_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> MDP:
    """The problem that `mdp_to_arrays` wrote, validated like any other input."""
    _check_schema(arrays)
    horizon, initial = arrays["horizon"].tolist(), arrays["initial"]  # 2.7 is for the MDP to refuse
    if "dense" in arrays:
        transitions: Any = arrays["dense"]
    elif "nexts" in arrays:
        transitions = arrays["nexts"]
    else:
        transitions = _sparse_kernels(arrays)
    stationary = len(transitions) == 1
    told_by_transitions = 1 < len(transitions) == horizon
    names = {kind: tuple(map(str, arrays[name])) for kind, name in _LABELS.items() if name in arrays}
    return MDP(
        transitions[0] if stationary else transitions,
        initial,
        None if told_by_transitions else horizon,
        labels=Labels(**names),
    )


def _sparse_kernels(arrays: Mapping[str, npt.NDArray[Any]]) -> list[Any]:
    from scipy import sparse

    kernels, start = [], 0
    shape = (arrays["indptr"].shape[1] - 1, len(arrays["initial"]))
    for k, indptr in enumerate(arrays["indptr"]):
        stop = start + int(indptr[-1])
        data, indices = arrays["weights"][start:stop], arrays["indices"][start:stop]
        check_compressed(f"transitions[{k}]", indptr, indices, len(data), shape)
        kernels.append(sparse.csr_array((data, indices, indptr), shape=shape))
        start = stop
    return kernels


def _check_schema(arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    missing = [name for name in ("schema", "horizon", "initial") if name not in arrays]
    if missing or not ({"dense", "nexts", "indptr"} & set(arrays)):
        name = missing[0] if missing else "transitions"
        raise InputError(
            f"the file holds no {name}, but a stored problem needs it: write the file with save_mdp."
        )
    if int(arrays["schema"]) != SCHEMA:
        raise InputError(
            f"the file has schema {int(arrays['schema'])}, but this version reads schema {SCHEMA}: "
            f"write it again, or install the version of normalfan that wrote it."
        )
