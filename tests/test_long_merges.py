"""Merges that a kernel of its own cuts into tiles, in groups of 32 and 256: of wide keys alone, whose cuts may be loose, and others."""

import pytest
import torch
from cases import distributions_of, make, name_of, two_sorted
from reference import signed_view

import torch_gpusort as gs

DTYPES = (torch.float32, torch.int64, torch.float16, torch.uint8)
INTEGERS = (torch.int32, torch.int64, torch.int16, torch.uint8)  # of the same widths
TILES = {dtype: tile for dtypes in (DTYPES, INTEGERS) for dtype, tile in zip(dtypes, (5632, 4608, 13_056, 14_336))}  # outputs
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


def replayed(run, results, graph):
    """Runs it, also as a CUDA graph, which is what writes the results then."""
    run()
    if graph:
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            run()
        for result in results:
            result.zero_()
        captured.replay()


def sorted_pairs(dtype, count):
    """Inputs of merges of which blocks find the first tiles for themselves, as bits, and what merging them gives."""
    total = 7 * GROUP * TILES[dtype] + 9
    pairs = [two_sorted((total // 2, total - total // 2), dtype, "cuda", seed=i) for i in range(count)]
    both = [torch.cat(pair) for pair in pairs]
    expected = [signed_view(x)[torch.sort(x, stable=True).indices] for x in both]
    return [tuple(map(signed_view, pair)) for pair in pairs], expected


@pytest.mark.gpu
@pytest.mark.parametrize("graph", (False, True))
@pytest.mark.parametrize("in_place", (False, True))
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_inputs_that_were_just_written(dtype, in_place, graph):
    """The first tiles start before the cuts are found, but not before the inputs are there, and see nothing of what stood in these before:
    all merges read the same two tensors, and a kernel in front of each writes them anew, in place from what stands there too."""
    pairs, expected = sorted_pairs(dtype, 4)
    changes = [tuple(x ^ y for x, y in zip(new, old)) for new, old in zip(pairs, pairs[-1:] + pairs[:-1])]
    a, b = (x.clone() for x in pairs[-1])
    results = [torch.empty_like(x) for x in expected]

    def run():
        for pair, change, result in zip(pairs, changes, results):
            for tensor, new, flips in zip((a, b), pair, change):
                tensor.bitwise_xor_(flips) if in_place else tensor.copy_(new)
            result.copy_(signed_view(gs.merge(a.view(dtype), b.view(dtype))))

    replayed(run, results, graph)
    for result, right in zip(results, expected):
        assert torch.equal(result, right)


@pytest.mark.gpu
@pytest.mark.parametrize("graph", (False, True))
@pytest.mark.parametrize("dtype", INTEGERS, ids=name_of)
def test_inputs_that_were_just_sorted(dtype, graph):
    """The same behind kernels that let the next one start early. Memory of inputs is used again."""
    pairs, expected = sorted_pairs(dtype, 4)
    shuffled = [tuple(x.flip(0).view(dtype) for x in pair) for pair in pairs]
    results = [torch.empty_like(x) for x in expected]

    def run():
        for (x, y), result in zip(shuffled, results):
            result.copy_(signed_view(gs.merge(gs.sort_keys(x), gs.sort_keys(y))))

    replayed(run, results, graph)
    for result, right in zip(results, expected):
        assert torch.equal(result, right)
