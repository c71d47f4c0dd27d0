"""Merges that a kernel of its own cuts into tiles, in groups of 32 and 256: of wide keys alone, whose cuts may be loose, and others."""

import pytest
import torch
from cases import distributions_of, make, name_of, two_sorted
from reference import signed_view

import torch_gpusort as gs

DTYPES = (torch.float32, torch.int64, torch.float16, torch.uint8)
TILES = {torch.float32: 5632, torch.int64: 4608, torch.float16: 13_056, torch.uint8: 14_336}  # outputs
GROUP = 256  # tiles


def check(a, b, descending=False):
    """Against torch's stable sort of all keys, where NaNs are given the same bits: on CUDA it orders them by theirs."""
    both = torch.cat((a, b), -1)
    keys = both.masked_fill(both.isnan(), float("nan")) if both.is_floating_point() else both
    order = torch.sort(keys, dim=-1, stable=True, descending=descending).indices
    assert torch.equal(signed_view(gs.merge(a, b, descending=descending)), signed_view(both).gather(-1, order))


def blocks(total, length, dtype, device):
    """Rising keys, dealt to the inputs in turn, `length` at a time."""
    both = signed_view(make("sorted", total, dtype, device))
    of_a = torch.arange(total, device=device) // length % 2 == 0
    return both[of_a].view(dtype), both[~of_a].view(dtype)


def check_lengths(lengths, dtype, device):
    for i, name in enumerate(distributions_of(dtype)):
        check(*two_sorted(lengths, dtype, device, name=name, descending=i % 2 == 1), i % 2 == 1)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_every_distribution(dtype):
    total = 7 * GROUP * TILES[dtype] + 77
    check_lengths((total // 2, total - total // 2), dtype, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_ends_of_tiles_and_groups(dtype):
    """Totals around whole groups, inputs at any alignment."""
    for i, total in enumerate((7 * GROUP + tiles) * TILES[dtype] + keys for tiles in (-1, 0, 1) for keys in (-1, 0, 1)):
        first = (total // 2, total // 3, total - 100, 40)[i % 4]
        a, b = two_sorted((first + i % 4, total - first + i // 4), dtype, "cuda", seed=i)
        check(a[i % 4 :], b[i // 4 :])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_inputs_that_take_turns(dtype):
    """Cuts between tiles of one input only, and others with a turn near them, leave it in doubt whether tiles rise."""
    total = 7 * GROUP * TILES[dtype] + 5
    for length in (1, 50, 1000, 3 * TILES[dtype], 40 * TILES[dtype], total // 2):
        a, b = blocks(total, length, dtype, "cuda")
        check(a, b)
        check(b, a)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_rows(dtype):
    total = 7 * GROUP * TILES[dtype]
    for lengths in ((total // 2 + 1, total // 2), (total // 5, total - total // 5 + 2)):
        check(*two_sorted(lengths, dtype, "cuda", name="zipf", rows=(2,)))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_unsorted_inputs_give_a_permutation(dtype):
    total = 7 * GROUP * TILES[dtype] + 5
    for name in ("random_bits", "reversed", "organ_pipe"):
        a, b = make(name, total // 2, dtype, "cuda", seed=1), make(name, total - total // 2, dtype, "cuda", seed=2)
        merged = gs.merge(a, b)
        assert torch.equal(signed_view(merged).sort().values, signed_view(torch.cat((a, b))).sort().values)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_indices_of_long_merges(dtype):
    """Exact cuts, by the same kernels."""
    total = 7 * GROUP * 8192
    for name in ("uniform", "zipf", "two_values"):
        a, b = two_sorted((total // 2, total - total // 2), dtype, "cuda", name=name)
        both = torch.cat((a, b))
        order = torch.sort(both, stable=True).indices
        assert torch.equal(gs.merge(a, b, return_indices=True).indices, order)


@pytest.mark.gpu
@pytest.mark.parametrize("graph", (False, True))
def test_inputs_that_were_just_written(graph):
    """The first tiles start before the cuts are found, but not before the inputs are there; and results are not read too early."""
    total = 7 * GROUP * TILES[torch.float32] + 9
    sources = [two_sorted((total // 2, total - total // 2), torch.float32, "cuda", seed=i) for i in range(4)]
    a, b = (torch.empty_like(x) for x in sources[0])
    results = [torch.empty(total, device="cuda") for _ in sources]

    def run():
        for (x, y), result in zip(sources, results):
            a.copy_(x)
            b.copy_(y)
            result.copy_(gs.merge(a, b))

    run()
    if graph:
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            run()
        for result in results:
            result.zero_()
        captured.replay()
    for (x, y), result in zip(sources, results):
        assert torch.equal(result, torch.cat((x, y)).sort().values)
