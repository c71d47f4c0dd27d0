"""torch.vmap over functions and raw ops: the batch dimension anywhere, nested, of size 0 and 1, mapped and not; equal to a loop."""

# ruff: noqa: B023 (the functions made in loops are called there and then)

import warnings

import numpy as np
import pytest
import torch
from cases import COMPLEX, DTYPES, make, name_of, sorted_values, two_sorted
from reference import bits_of, stable_order, take_bits

import torch_gpusort as gs

ops = torch.ops.gpusort
ONE_TENSOR = {
    "sort": lambda t, dim: tuple(gs.sort(t, dim, True)),
    "argsort": lambda t, dim: (gs.argsort(t, dim),),
    "sort_keys": lambda t, dim: (gs.sort_keys(t, dim),),
    "radix_sort": lambda t, dim: tuple(gs.radix_sort(t, dim, begin_bit=3, end_bit=20)),
    "msort": lambda t, dim: (gs.msort(t),),
    "sort with int32 indices": lambda t, dim: tuple(gs.sort(t, dim, index_dtype=torch.int32)),
    "raw sort": lambda t, dim: tuple(ops.sort(t, dim, True)),
    "raw argsort": lambda t, dim: (ops.argsort(t, dim),),
    "raw sort_keys": lambda t, dim: (ops.sort_keys(t, dim, True),),
    "raw radix_sort": lambda t, dim: tuple(ops.radix_sort(t, dim)),
    "raw msort": lambda t, dim: (ops.msort(t),),
}


def same(got, want):
    assert got.shape == want.shape and got.dtype is want.dtype and torch.equal(got, want)


@pytest.fixture(autouse=True)
def no_slow_fallback():
    """An op without a batching rule is run in a loop by torch, which warns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*batching rule.*")
        yield


@pytest.mark.parametrize("name", ONE_TENSOR)
def test_the_batch_dimension_anywhere(device, name):
    function = ONE_TENSOR[name]
    x = make("zipf", (4, 5, 6), torch.float32, device)
    for in_dim in (0, 1, 2, -1):
        for dim in (0, 1, -1, -2):
            got = torch.vmap(lambda t: function(t, dim), in_dims=in_dim)(x)
            parts = [function(t, dim) for t in x.unbind(in_dim)]
            for g, want in zip(got, zip(*parts)):
                same(g, torch.stack(want))
    got = torch.vmap(lambda t: function(t, 0), out_dims=1)(x)
    for g, want in zip(got, zip(*[function(t, 0) for t in x])):
        same(g, torch.stack(want, 1))


@pytest.mark.parametrize("name", ONE_TENSOR)
def test_nested_and_degenerate_batches(device, name):
    function = ONE_TENSOR[name]
    x = make("zipf", (3, 4, 5, 6), torch.float32, device)
    got = torch.vmap(torch.vmap(lambda t: function(t, 1), in_dims=1))(x)
    for i in range(3):
        for j in range(5):
            for g, want in zip(got, function(x[i, :, j], 1)):
                same(g[i, j], want)
    scalars = make("uniform", 7, torch.float32, device)
    for g, want in zip(torch.vmap(lambda t: function(t, 0))(scalars), zip(*[function(t, 0) for t in scalars])):
        same(g, torch.stack(want))
    one = x[:1, 0]
    for g, want in zip(torch.vmap(lambda t: function(t, 0))(one), function(one[0], 0)):
        same(g, want[None])
    for g in torch.vmap(lambda t: function(t, 0))(x[:0, 0]):
        assert g.shape == (0, 5, 6)


def test_a_dim_out_of_range_counts_the_examples_dims(device):
    x = torch.zeros(3, 4, device=device)
    for dim in (1, -2):
        with pytest.raises((IndexError, RuntimeError)):
            torch.vmap(lambda t: ops.sort(t, dim))(x)


@pytest.mark.parametrize("raw", [False, True])
def test_merges(device, raw):
    merge = (lambda p, q: ops.merge(p, q)) if raw else (lambda p, q: gs.merge(p, q))
    indexed = (lambda p, q: tuple(ops.merge_with_indices(p, q))) if raw else (lambda p, q: tuple(gs.merge(p, q, return_indices=True)))
    by_key = ops.merge_by_key if raw else gs.merge_by_key
    a, b = two_sorted((7, 9), torch.float32, device, rows=(5,), name="zipf")
    for p, q, in_dims in ((a, b, 0), (a, b[0], (0, None)), (a[0], b, (None, 0)), (a.t().contiguous(), b, (1, 0))):
        got, pair = torch.vmap(merge, in_dims=in_dims)(p, q), torch.vmap(indexed, in_dims=in_dims)(p, q)
        for i in range(5):
            left = p if in_dims == (None, 0) else p[:, i] if in_dims == (1, 0) else p[i]
            right = q if in_dims == (0, None) else q[i]
            same(got[i], merge(left, right))
            for g, want in zip(pair, indexed(left, right)):
                same(g[i], want)
    payload = make("uniform", (5, 16), torch.int64, device)
    keys, values = torch.vmap(lambda *t: tuple(by_key(*t)))(a, payload[:, :7], b, payload[:, 7:])
    for i in range(5):
        for g, want in zip((keys, values), by_key(a[i], payload[i, :7], b[i], payload[i, 7:])):
            same(g[i], want)


def test_co_rank(device):
    a, b = two_sorted((7, 9), torch.float32, device, rows=(5,), name="zipf")
    k = torch.randint(0, 17, (5, 4), generator=torch.Generator().manual_seed(0)).to(device)
    for p, q, in_dims in ((a, b, 0), (a[0], b[0], (0, None, None)), (a, b[1], (0, 0, None))):
        got = torch.vmap(gs.co_rank, in_dims=in_dims)(k, p, q)
        for i in range(5):
            same(got[i], gs.co_rank(k[i], p if p.dim() == 1 else p[i], q if q.dim() == 1 else q[i]))


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_values_of_every_dtype_move_with_their_keys(device, dtype):
    keys = make("zipf", (4, 5, 60), torch.int32, device)
    values = make("zipf" if dtype in COMPLEX else "random_bits", (4, 5, 60), dtype, device)
    want = take_bits(values, stable_order(keys, 2, True), 2)
    for function in (gs.sort_by_key, lambda *t, **options: torch.compile(gs.sort_by_key, backend="eager")(*t, **options)):
        _, moved = torch.vmap(lambda k, v: function(k, v, dim=-1, descending=True))(keys, values)
        assert moved.dtype is dtype and np.array_equal(bits_of(moved), want)
    _, moved = torch.vmap(torch.vmap(lambda k, v: gs.sort_by_key(k, v, descending=True)), in_dims=(1, 1), out_dims=1)(keys, values)
    assert np.array_equal(bits_of(moved), want)
    _, moved = torch.vmap(lambda k: gs.sort_by_key(k, values[0, 0], dim=0, descending=True))(keys[0])
    for i in range(5):
        assert np.array_equal(bits_of(moved[i]), take_bits(values[0, 0], stable_order(keys[0, i], 0, True), 0))
    _, moved = torch.vmap(lambda k, v: gs.sort_by_key(k, v, dim=0))(keys[0, 0], values[0, 0])  # each example is a scalar
    assert np.array_equal(bits_of(moved), bits_of(values[0, 0]))


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_runs_of_every_dtype_in_a_list(device, dtype):
    name = "zipf" if dtype in COMPLEX else "random_bits"
    lengths = (30, 0, 41)
    runs = [[sorted_values(make(name, n, dtype, device, seed=(i, r))) for r, n in enumerate(lengths)] for i in range(3)]
    stored = torch.uint8 if dtype is torch.bool else dtype  # torch.stack makes every True a one
    batches = [torch.stack([example[r].view(stored) for example in runs]).view(dtype) for r in range(3)]
    got = torch.vmap(lambda *parts: gs.merge_many(parts))(*batches)
    for i, example in enumerate(runs):
        assert np.array_equal(bits_of(got[i]), bits_of(gs.merge_many(example)))


def test_a_merge_that_checks_its_inputs(device):
    a, b = two_sorted((7, 9), torch.float32, device, rows=(5,))
    same(torch.vmap(lambda p, q: gs.merge(p, q, check=True))(a, b), gs.merge(a, b))
    got = torch.vmap(lambda p, q: tuple(gs.merge(p, q, check=True, return_indices=True)), in_dims=(0, None))(a, b[0])
    same(got[0], gs.merge(a, b[:1].expand(5, 9)))
    b[3] = b[3].flip(0)
    with pytest.raises(ValueError, match=r"^b is not sorted.*\[3, 1\]"):
        torch.vmap(lambda p, q: gs.merge(p, q, check=True))(a, b)


def test_many_examples_run_as_one_call(device):
    x = make("uniform", (3000, 4), torch.float32, device)
    same(torch.vmap(lambda t: ops.sort_keys(t))(x), torch.sort(x).values)
