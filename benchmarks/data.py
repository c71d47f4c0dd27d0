"""Inputs of the official distributions, made on the device from a seed by the generator that the tests use (tests/cases.py).

None of the official distributions holds a NaN: torch's order of NaN on CUDA is not that of the contract, so results could not be compared.
"""

import functools
import importlib.util
import pathlib

import torch


@functools.lru_cache
def generator():
    """tests/cases.py, loaded by its path: some environments have another package called `tests`."""
    path = pathlib.Path(__file__).resolve().parent.parent / "tests" / "cases.py"
    spec = importlib.util.spec_from_file_location("gpusort_test_cases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_inputs(case, device, seed):
    """The tensors that the operation of `case` takes: one; two for a merge (keys a, keys b); four for a merge by key (keys a, values a,
    keys b, values b); one per column for a lexsort (the last one primary)."""
    dtype = getattr(torch, case.dtype)
    if case.distribution != "two_sorted":
        made = generator().make(case.distribution, case.shape, dtype, device, seed)
        return tuple(made.unbind(0)) if case.op == "lexsort" else (made,)
    a, b = generator().two_sorted(case.shape, dtype, device, seed)
    if case.op == "merge":
        return a, b
    # Values name the place in cat(a, b), so a wrong pairing can not go unseen.
    a_values = torch.arange(a.numel(), dtype=torch.int32, device=device)
    return a, a_values, b, torch.arange(a.numel(), a.numel() + b.numel(), dtype=torch.int32, device=device)
