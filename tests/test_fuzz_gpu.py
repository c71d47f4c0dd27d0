"""A seeded random sweep on the GPU: shapes x dtypes x dims x layouts x distributions x directions x ops, bit for bit against NumPy.

GPUSORT_FUZZ sets the number of cases (400), GPUSORT_FUZZ_SEED the first seed (0). A failure names its seed.
"""

import os

import numpy as np
import pytest
import torch
from cases import COMPLEX, DTYPES, distributions_of, make, two_sorted
from reference import (
    assert_indices,
    assert_stable_sort,
    assert_values,
    bits_of,
    cat_bits_last,
    co_ranks,
    describe,
    signed_view,
    stable_order,
    window_order,
)

import torch_gpusort as gs

COUNT = int(os.environ.get("GPUSORT_FUZZ", "400"))
FIRST = int(os.environ.get("GPUSORT_FUZZ_SEED", "0"))
BLOCK = 20
INTERESTING = (
    1,
    2,
    16,
    31,
    32,
    33,
    63,
    64,
    65,
    127,
    128,
    129,
    255,
    256,
    257,
    1000,
    1023,
    1024,
    1025,
    2047,
    2049,
    4095,
    4097,
    8191,
    8193,
    12_289,
    16_383,
    16_385,
    20_479,
    20_481,
    24_575,
    24_577,
    32_769,
    65_535,
    65_537,
    131_073,
)


def a_length(random, limit):
    choices = [n + int(random.integers(-1, 2)) for n in INTERESTING if n <= limit]
    return max(0, int(random.choice(choices)) if random.random() < 0.6 else int(2 ** random.uniform(0, np.log2(limit + 1))) - 1)


def a_tensor(random, seed, device):
    """A tensor of up to 400,000 elements, its sort dim, and what was drawn."""
    dtype = DTYPES[random.integers(len(DTYPES))]
    name = str(random.choice(distributions_of(dtype)))
    rank = int(random.choice([1, 1, 2, 2, 2, 3, 4]))
    dim = int(random.integers(rank))
    shape = [1] * rank
    shape[dim] = a_length(random, 200_000 if rank == 1 else 60_000)
    room = 400_000 // max(1, shape[dim])
    for axis in range(rank):
        if axis != dim:
            shape[axis] = int(min(room, 2 ** random.uniform(0, np.log2(room + 1))))
            room //= max(1, shape[axis])
    kind = str(random.choice(["plain", "plain", "permuted", "stepped", "offset", "expanded"]))
    if kind == "permuted":
        order = random.permutation(rank)
        base = make(name, [shape[i] for i in order], dtype, device, seed)
        x = base.permute(*np.argsort(order).tolist())
    elif kind == "stepped":
        base = make(name, [2 * s for s in shape], dtype, device, seed)
        x = base[tuple(slice(int(random.integers(2)), None, 2) for _ in shape)]
    elif kind == "offset":
        offset = int(random.integers(1, 9))
        x = make(name, int(np.prod(shape)) + offset, dtype, device, seed)[offset:].view(shape)
    elif kind == "expanded" and rank > 1:
        axis = (dim + 1) % rank
        small = [1 if i == axis else s for i, s in enumerate(shape)]
        x = make(name, small, dtype, device, seed).expand(shape)
    else:
        x = make(name, shape, dtype, device, seed)
    return x, dim - rank * int(random.integers(2)), (name, kind)


def one_sort(random, seed, device):
    x, dim, drawn = a_tensor(random, seed, device)
    descending = bool(random.integers(2))
    op = str(random.choice(["sort", "sort", "sort32", "sort_keys", "argsort", "radix_sort", "msort"]))
    before = bits_of(x)
    if op == "radix_sort" and x.dtype not in COMPLEX:
        begin, end = sorted(random.integers(0, x.element_size() * 8 + 1, 2).tolist())
        order = window_order(x, begin, end, dim, descending)
        assert_stable_sort(x, gs.radix_sort(x, dim, descending, begin_bit=begin, end_bit=end), dim, descending, order=order)
    elif op == "msort":
        assert_values(x, gs.msort(x), stable_order(x, 0), 0, describe(x, 0, False))
    else:
        order = stable_order(x, dim, descending)
        what = describe(x, dim, descending)
        if op == "sort_keys":
            assert_values(x, gs.sort_keys(x, dim, descending), order, dim, what)
        elif op == "argsort":
            assert_indices(x, gs.argsort(x, dim, descending), order, what)
        elif op == "sort32":
            assert_stable_sort(x, gs.sort(x, dim, descending, index_dtype=torch.int32), dim, descending, torch.int32, order)
        else:
            assert_stable_sort(x, gs.sort(x, dim, descending), dim, descending, order=order)
    assert np.array_equal(bits_of(x), before), f"the input was changed: {drawn}"


def one_merge(random, seed, device):
    dtype = DTYPES[random.integers(len(DTYPES))]
    name = str(random.choice(distributions_of(dtype)))
    rows = () if random.random() < 0.6 else (int(random.integers(1, 9)),)
    lengths = a_length(random, 100_000 // (rows[0] if rows else 1)), a_length(random, 100_000 // (rows[0] if rows else 1))
    descending = bool(random.integers(2))
    a, b = two_sorted(lengths, dtype, device, seed, name, rows, descending)
    both = cat_bits_last(a, b)
    order = stable_order(both, -1, descending)
    what = f"merge of {describe(a, -1, descending)} and {tuple(b.shape)}, {name}"
    values, indices = gs.merge(a, b, descending=descending, return_indices=True)
    assert_indices(both, indices, order, what)
    assert_values(both, values, order, -1, what)
    assert_values(both, gs.merge(a, b, descending=descending), order, -1, what + ", keys only")
    value_dtype = DTYPES[random.integers(len(DTYPES))]
    p, q = make("random_bits", a.shape, value_dtype, device, seed), make("random_bits", b.shape, value_dtype, device, seed + 1)
    keys, carried = gs.merge_by_key(a, p, b, q, descending=descending)
    assert_values(both, keys, order, -1, what + ", by key")
    assert_values(cat_bits_last(p, q), carried, order, -1, what + f", values {value_dtype}")
    if not rows:
        k = torch.from_numpy(np.sort(random.integers(0, sum(lengths) + 1, 500))).to(device)
        assert np.array_equal(gs.co_rank(k, a, b, descending=descending).cpu().numpy(), co_ranks(a, b, descending)[k.cpu().numpy()]), what


def run_cases(first, count, device):
    for seed in range(first, first + count):
        random = np.random.default_rng(seed)
        try:
            (one_merge if random.random() < 0.25 else one_sort)(random, seed, device)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.gpu
@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, BLOCK))
def test_random_cases(first):
    run_cases(first, min(BLOCK, FIRST + COUNT - first), "cuda")


def test_the_same_cases_on_the_cpu():
    run_cases(10_000, 40, "cpu")


@pytest.mark.gpu
def test_neighbouring_memory_is_left_alone():
    """Results written next to canaries: an overrun of the outputs would hit other tensors, which are compared before and after."""
    random = np.random.default_rng(99)
    for seed in range(60):
        n = a_length(random, 100_000) + 1
        guards = [torch.full((1024,), 0x5A5A5A5A, dtype=torch.int32, device="cuda") for _ in range(4)]
        x = make("random_bits", n, (torch.uint8, torch.int16, torch.float32, torch.int64)[seed % 4], "cuda", seed)
        results = [gs.sort(x), gs.sort_keys(x), gs.argsort(x, index_dtype=torch.int32)]
        assert all(bool(g.eq(0x5A5A5A5A).all()) for g in guards) and torch.equal(signed_view(results[0].values), signed_view(results[1]))
