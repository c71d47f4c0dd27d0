"""A small fixed set of calls that reaches every family of kernels, to be run under compute-sanitizer (tests/gpu_check.py does).

Inputs are made on the CPU and copied over, so that initcheck, which watches our kernels only, knows them as written. Results are copied
back and compared with NumPy, which also makes initcheck see every element of them. gpu_check.py switches torch's caching allocator off:
each tensor and each workspace is an allocation of its own, and one element too far is outside of it.
"""

# ruff: noqa: B023 (the functions made in loops are called there and then)

import sys
import time

import numpy as np
import torch
from cases import make, two_sorted
from reference import (
    allowed_options,
    assert_indices,
    assert_stable_sort,
    assert_values,
    cat_bits_last,
    co_ranks,
    numpy_keys,
    stable_order,
    window_order,
)

import torch_gpusort as gs

# Lengths of rows: several rows to a warp, to a block, one block with ever larger tiles, one tile of the radix passes, several tiles. Those
# of 513 to 4096 (64-bit keys: from 1025) are shared by a cluster of blocks, which racecheck watches very slowly: 2 s a call at 1025, 10 s
# at 3000. One call for each width of word is enough.
ROWS = ((70, 7), (9, 33), (5, 300), (2, 5000), (2, 20_481))
ARRAYS = (1, 2, 40_000, 150_001)
# Rows for each family by name, among them some that a family leaves to the radix sort.
BY_NAME = ((10, 50), (3, 5000), (30_000,), (2, 40_000))
# (length of a, length of b), leading dims: nothing, next to nothing, one tile, several, very uneven, several rows.
MERGES = (((0, 5), ()), ((3, 1), ()), ((1000, 2049), ()), ((30_000, 20_001), ()), ((10, 33_000), ()), ((70, 40), (9,)), ((3000, 999), (3,)))


def sort_calls():
    for dtype in (torch.uint8, torch.bfloat16, torch.float32, torch.int64):
        for rows, length in ROWS:
            yield "zipf", (rows, length), dtype, -1
        for length in ARRAYS:
            yield "random_bits", (length,), dtype, -1
    yield "zipf", (2, 600), torch.float32, -1
    yield "random_bits", (2, 1100), torch.int64, -1
    yield "all_equal", (150_001,), torch.float32, -1
    yield "two_values", (60_000,), torch.int64, -1
    yield "sorted", (60_000,), torch.int32, -1
    yield "nans", (30_000,), torch.float64, -1
    yield "random_bits", (300, 40), torch.float32, 0
    yield "random_bits", (20, 30, 40), torch.int16, 1
    yield "few_bits", (3, 700), torch.complex64, -1
    yield "few_bits", (5000,), torch.complex128, -1


def run_sorts():
    calls = 0
    for name, shape, dtype, dim in sort_calls():
        x = make(name, shape, dtype)
        for descending in (False, True) if len(shape) > 1 else (False,):
            order = stable_order(x, dim, descending)
            result = gs.sort(x.cuda(), dim, descending)
            assert_stable_sort(x, (result[0].cpu(), result[1].cpu()), dim, descending, order=order)
            calls += 1
        assert_values(x, gs.sort_keys(x.cuda(), dim).cpu(), stable_order(x, dim), dim, f"sort_keys {name}")
        indices = gs.argsort(x.cuda(), dim, index_dtype=torch.int32).cpu()
        assert_indices(x, indices, stable_order(x, dim), f"argsort {name}", torch.int32)
        calls += 2
    return calls


def run_long_arrays():
    """Beyond the grid sort: 8-bit keys by one partition, buckets after a partition in one launch, 64-bit keys by few digits."""
    calls = 0
    for name, dtype in (("random_bits", torch.uint8), ("uniform", torch.float32), ("random_bits", torch.int64), ("two_values", torch.bool)):
        x = make(name, 300_001, dtype)
        values, indices = gs.sort(x.cuda())
        assert_stable_sort(x, (values.cpu(), indices.cpu()))
        calls += 1
    # Groups of the same leading digits, a long one among them: of two digits, ordered by windows, and of three, by records.
    for live, group, rest in ((-1, 700, 48), ((1 << 57) - 1, 200, 40)):
        x = make("random_bits", 300_001, torch.int64) & live
        x[:group] &= (1 << rest) - 1
        values, indices = gs.radix_sort(x.cuda())
        assert_stable_sort(x, (values.cpu(), indices.cpu()))
        assert_values(x, gs.sort_keys(x.cuda()).cpu(), stable_order(x, -1), -1, "sort_keys of a long group")
        calls += 2
    return calls


def run_algorithms():
    calls = 0
    for algorithm in allowed_options(lambda: gs.sort(torch.zeros(1).cuda(), algorithm="no such"), "algorithm"):
        for shape in BY_NAME:
            for name, dtype in (("zipf", torch.float32), ("organ_pipe", torch.int64), ("random_bits", torch.float32)):
                x = make(name, shape, dtype)
                values, indices = gs.sort(x.cuda(), algorithm=algorithm)
                assert_stable_sort(x, (values.cpu(), indices.cpu()))
                calls += 1
    return calls


def run_radix_kernels():
    calls = 0
    x = make("random_bits", 30_000, torch.float32)
    for kernel in allowed_options(lambda: gs.radix_sort(x.cuda(), kernel="no such"), "kernel"):
        for digit_bits in allowed_options(lambda: gs.radix_sort(x.cuda(), kernel=kernel, digit_bits=3), "digit_bits"):
            values, indices = gs.radix_sort(x.cuda(), kernel=kernel, digit_bits=digit_bits)
            assert_stable_sort(x, (values.cpu(), indices.cpu()))
            calls += 1
    return calls


def run_layouts():
    calls = 0
    for dtype in (torch.uint8, torch.float16, torch.float32, torch.int64, torch.complex64):
        base = make("zipf", (33, 70), dtype)
        there = base.cuda()
        for cut in (lambda t: t.t(), lambda t: t[::2, 1:], lambda t: t[:1].expand(5, 70), lambda t: t.flatten()[3:503]):
            view, copy = cut(base), cut(there)
            for dim in range(view.dim()):
                values, indices = gs.sort(copy, dim)
                assert_stable_sort(view, (values.cpu(), indices.cpu()), dim)
                calls += 1
    return calls


def run_windows():
    calls = 0
    for dtype, begin, end in (
        (torch.int32, 5, 19),
        (torch.int64, 24, 41),
        (torch.float16, 0, 9),
        (torch.uint8, 2, 7),
        (torch.float32, 7, 7),
    ):
        for length in (900, 60_000):
            x = make("random_bits", length, dtype)
            values, indices = gs.radix_sort(x.cuda(), begin_bit=begin, end_bit=end)
            assert_stable_sort(x, (values.cpu(), indices.cpu()), order=window_order(x, begin, end))
            calls += 1
    return calls


def run_merges():
    calls = 0
    for dtype in (torch.uint8, torch.bfloat16, torch.float32, torch.int64, torch.complex64):
        for lengths, rows in MERGES:
            a, b = two_sorted(lengths, dtype, name="zipf", rows=rows)
            both = cat_bits_last(a, b)
            order = stable_order(both)
            values, indices = gs.merge(a.cuda(), b.cuda(), return_indices=True)
            assert_stable_sort(both, (values.cpu(), indices.cpu()), order=order)
            assert_values(both, gs.merge(a.cuda(), b.cuda()).cpu(), order, -1, "merge")
            p, q = make("random_bits", a.shape, torch.int16), make("random_bits", b.shape, torch.int16)
            keys, payload = gs.merge_by_key(a.cuda(), p.cuda(), b.cuda(), q.cuda())
            assert_values(both, keys.cpu(), order, -1, "merge_by_key")
            assert_values(cat_bits_last(p, q), payload.cpu(), order, -1, "merge_by_key")
            calls += 3
        for kernel in allowed_options(lambda: gs.merge(a.cuda(), b.cuda(), kernel="no such"), "kernel"):
            a, b = two_sorted((5000, 3001), dtype, name="zipf")
            values, indices = gs.merge(a.cuda(), b.cuda(), return_indices=True, kernel=kernel)
            assert_stable_sort(cat_bits_last(a, b), (values.cpu(), indices.cpu()))
            calls += 1
        a, b = two_sorted((500, 300), dtype, name="zipf")
        k = torch.arange(0, 801, 7)
        assert (gs.co_rank(k.cuda(), a.cuda(), b.cuda()).cpu().numpy() == co_ranks(a, b)[k.numpy()]).all()
        calls += 1
    unsorted = make("random_bits", 5000, torch.float32), make("random_bits", 3001, torch.float32)
    indices = gs.merge(unsorted[0].cuda(), unsorted[1].cuda(), return_indices=True)[1].cpu()
    assert torch.equal(indices.sort().values, torch.arange(8001))
    return calls + 1


def run_several_keys():
    """lexsort (columns that fit one word, that tie, that do not fit), sort_rows, sort_by_key, merge_many, and 16-bit keys by counting."""
    calls = 0
    for columns in (
        (make("uniform", 9000, torch.int16), make("few_bits", 9000, torch.int32)),
        (make("random_bits", 120_000, torch.int64), make("zipf", 120_000, torch.int64)),
        (make("random_bits", 9000, torch.float64), make("two_values", 9000, torch.float32), make("uniform", 9000, torch.bool)),
    ):
        expected = np.lexsort([numpy_keys(column) for column in columns])
        assert np.array_equal(gs.lexsort([column.cuda() for column in columns]).cpu().numpy(), expected)
        calls += 1
    rows = make("few_bits", (300, 5), torch.int32)
    values, indices = gs.sort_rows(rows.cuda())
    expected = np.lexsort([rows[:, place].numpy() for place in reversed(range(5))])
    assert np.array_equal(indices.cpu().numpy(), expected) and np.array_equal(values.cpu().numpy(), rows.numpy()[expected])
    keys, payload = make("zipf", 5000, torch.float32), make("random_bits", 5000, torch.int16)
    got = gs.sort_by_key(keys.cuda(), payload.cuda())
    order = stable_order(keys)
    assert_values(keys, got[0].cpu(), order, -1, "sort_by_key")
    assert_values(payload, got[1].cpu(), order, -1, "sort_by_key")
    runs = [gs.sort_keys(part) for part in make("zipf", 20_000, torch.float32).chunk(70)]
    offsets = torch.tensor([0, *np.cumsum([run.numel() for run in runs])])
    merged, indices = gs.merge_many(torch.cat(runs).cuda(), offsets.cuda(), return_indices=True)
    assert_stable_sort(torch.cat(runs), (merged.cpu(), indices.cpu()))
    for name, dtype in (("zipf", torch.float16), ("random_bits", torch.float16), ("uniform", torch.int16)):
        x = make(name, 1 << 20, dtype)
        assert_values(x, gs.sort_keys(x.cuda()).cpu(), stable_order(x), -1, f"counted {name}")
        calls += 1
    for name in ("uniform", "random_bits"):
        x = make(name, 150_001, torch.bool)
        assert_values(x, gs.sort_keys(x.cuda()).cpu(), stable_order(x), -1, f"bools, {name}")
        calls += 1
    ids = make("ids_below_64", 150_001, torch.int64)
    values, indices = gs.radix_sort(ids.cuda())
    assert_stable_sort(ids, (values.cpu(), indices.cpu()))
    return calls + 5


def run_longer_sorts():
    """Buckets that pull their keys from ordered tiles, 16-bit keys in one launch, by passes and by pattern, wide merges of runs."""
    calls = 0
    for name, length, dtype in (
        ("uniform", 900_001, torch.float32),
        ("zipf", 900_001, torch.float32),
        ("random_bits", 900_001, torch.int64),
        ("zipf", 300_001, torch.float16),
        ("random_bits", 4_400_001, torch.float16),
        ("two_values", 4_400_001, torch.int16),
    ):
        x = make(name, length, dtype)
        values, indices = gs.sort(x.cuda())
        assert_stable_sort(x, (values.cpu(), indices.cpu()))
        calls += 1
    x = make("zipf", 1 << 22, torch.float32)
    values, indices = gs.merge_sort(x.cuda())
    assert_stable_sort(x, (values.cpu(), indices.cpu()))
    return calls + 1


def run_mapped_buckets():
    """A row too long for one partition: cut twice by a map of its codes."""
    x = make("uniform", (1 << 23) + 1, torch.float32)
    there = x.cuda()
    # initcheck does not see what bulk copies write. Under it alone torch's caching allocator is on: results and workspace lie in blocks
    # that the host has written.
    written = [torch.zeros(9 * x.numel(), dtype=torch.uint8).cuda() for _ in range(3)]
    del written
    values, indices = gs.sort(there)
    assert_stable_sort(x, (values.cpu(), indices.cpu()))
    return 1


def run_longer_merges():
    """Keys alone: one wave of tiles with windows, and several with loose cuts, first tiles that find their own pieces, cuts by windows."""
    calls = 0
    for dtype, lengths in (
        (torch.float32, (300_000, 300_001)),
        (torch.uint8, (500_000, 300_001)),
        (torch.float32, (2_600_000, 2_700_001)),
        (torch.int64, (1_600_000, 1_500_001)),
        (torch.int16, (3_500_000, 3_600_001)),
    ):
        a, b = two_sorted(lengths, dtype, name="random_bits")
        both = cat_bits_last(a, b)
        assert_values(both, gs.merge(a.cuda(), b.cuda()).cpu(), stable_order(both), -1, "merge")
        calls += 1
    return calls


if __name__ == "__main__":
    parts = [part for name, part in list(globals().items()) if name.startswith("run_")]
    names, total = sys.argv[1:], 0  # of parts; all without any
    for part in parts:
        if names and part.__name__ not in names:
            continue
        started = time.monotonic()
        calls = part()
        torch.cuda.synchronize()
        total += calls
        print(f"{part.__name__}: {calls} calls in {time.monotonic() - started:.0f} s", flush=True)
    print(f"SANITIZER SET: {total} calls, all results right")
