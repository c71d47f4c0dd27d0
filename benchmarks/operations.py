"""What each official operation means: the call of this project, the call of torch that does the same, and the peers. Every call takes the
tensors of one input set (data.make_inputs) and returns tensors in one order: values first, then indices."""

import torch

# How many low bits of the keys vary: peers are told (CUB's end_bit), this project and torch are not.
KEY_BITS = {"ids_below_2^20": 20, "ids_below_64": 6}


def ours(library, case):
    """This project's call for `case`, or None where the package has no such function."""
    function = getattr(library, case.op, None)
    if function is None:
        return None
    dim = case.options.get("dim", -1)
    calls = {
        "sort": lambda keys: function(keys, dim=dim),
        "sort_keys": lambda keys: function(keys, dim=dim),
        "merge": lambda a, b: function(a, b),
        "merge_by_key": lambda a_keys, a_values, b_keys, b_values: function(a_keys, a_values, b_keys, b_values),
        "merge_sort": lambda keys: function(keys, dim=dim),
        "lexsort": lambda *columns: function(list(columns)),
        "unique": lambda rows: function(rows, dim=0),
    }
    return calls[case.op]


def with_torch(case):
    """torch's call for `case`, which is also the reference: torch.sort(stable=True), or what the case names. It may return more than ours
    (indices beside the values): torch has no call for keys only, so its column is the sort with indices."""
    dim = case.options.get("dim", -1)
    calls = {
        "sort": lambda keys: torch.sort(keys, dim=dim, stable=True),
        "sort_keys": lambda keys: torch.sort(keys, dim=dim, stable=True),
        "merge": lambda a, b: torch.sort(torch.cat((a, b)), stable=True),
        "merge_by_key": concatenate_sort_gather,
        "merge_sort": lambda keys: torch.sort(keys, dim=dim, stable=True),
        "lexsort": stable_argsorts,
        "unique": lambda rows: torch.unique(rows, dim=0),
    }
    return calls[case.op]


def concatenate_sort_gather(a_keys, a_values, b_keys, b_values):
    keys, order = torch.sort(torch.cat((a_keys, b_keys)), stable=True)
    return keys, torch.cat((a_values, b_values))[order]


def stable_argsorts(*columns):
    """Least significant column first, each sort stable: the last column is the primary one, as NumPy has it."""
    order = torch.argsort(columns[0], stable=True)
    for column in columns[1:]:
        order = order[torch.argsort(column[order], stable=True)]
    return order


def peers_of(case):
    """Names of the peers that can do the case, best form of each (functions of peers.cub). DeviceSegmentedSort reads back from the
    device, so it can not be captured in a graph; DeviceSegmentedRadixSort takes one block per row and is hopeless for many short rows
    (713 ms at [4194304, 16])."""
    if case.op == "sort_keys":
        return ["radix_keys"]
    if case.op == "merge_sort":
        return ["merge_sort_pairs"]
    if case.op in ("merge", "merge_by_key"):
        return ["merge_keys" if case.op == "merge" else "merge_pairs"]
    if case.op != "sort" or case.options.get("dim", -1) not in (-1, len(case.shape) - 1):
        return []
    if len(case.shape) == 1:
        return ["radix_pairs"]
    if case.dtype != "float32":
        return []
    names = ["segmented_sort"] if case.timing != "graph" else []
    return names + (["segmented_radix_sort"] if case.shape[-1] >= 4096 else [])


def row_note(case, impl, torch_version):
    """What a reader must know beside a number, or None."""
    release = tuple(int(part) for part in torch_version.split("+")[0].split(".")[:2])
    if impl == "torch" and case.op == "sort" and len(case.shape) > 1 and 2 <= case.shape[-1] <= 128 and release < (2, 13):
        return "torch before 2.13 has a slow path for rows of 2..128 (pytorch PR 183527)"
    return None
