"""Rows too long for one partition: every distribution, whether it is sorted by the map or left to the radix sort, bit by bit."""

import gc

import pytest
import torch
from cases import distributions_of, generator_of, make, name_of
from reference import assert_is_stable_sort

import torch_gpusort as gs

pytestmark = pytest.mark.gpu

DTYPES = (torch.float32, torch.int32)


def check(x):
    for descending in (False, True):
        values, indices = gs.sort(x, descending=descending)
        assert_is_stable_sort(x, values, indices, -1, descending)


def normal(n, seed):
    return torch.randn(n, device="cuda", generator=generator_of("cuda", seed))


def follows_the_map(x):
    """Sorts, checks, and says which way the device took: the memory that the call has given back still tells.

    The allocator's cache is empty before, so a block of the workspace's size for which nothing is reserved is the workspace. Where the map
    is followed, bits 27 of 32 neighbouring index words make the word of acceptance (csrc/cuda/mapped_buckets/mapped_arguments.h).
    """
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    values, indices = gs.sort(x)
    reserved = torch.cuda.memory_reserved()
    workspace = torch.empty(x.numel(), dtype=torch.int64, device="cuda")
    assert torch.cuda.memory_reserved() == reserved, "this is not the workspace"
    bits = (workspace[: 32 * 514] >> 27 & 1).view(-1, 32)
    words = (bits << torch.arange(32, device="cuda")).sum(1).tolist()
    assert_is_stable_sort(x, values, indices, -1, False)
    return 0x9E3779B9 in words


def test_the_device_follows_the_map_where_keys_spread_and_only_there():
    n = 1 << 24
    assert follows_the_map(normal(n, 11))
    assert follows_the_map(make("random_bits", (n,), torch.int32, "cuda", seed=12))
    assert follows_the_map(normal(2 * n, 13).view(8, 1 << 22))
    assert not follows_the_map(normal(n, 14).sort().values)
    assert not follows_the_map(normal(n, 15).round())
    assert not follows_the_map(torch.zeros(n, device="cuda"))


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("shape", ((9_000_001,), (3, 5_700_001)), ids=str)
def test_every_distribution(shape, dtype):
    for seed, name in enumerate(distributions_of(dtype)):
        check(make(name, shape, dtype, "cuda", seed=seed))


@pytest.mark.parametrize(
    "shape", ((1 << 23,), ((1 << 24) + 12_345,), (4, 1 << 24), (16, 1 << 22), (2, (1 << 22) + 1), ((1 << 26) + 3,)), ids=str
)
def test_smooth_data(shape):
    """What the map is for."""
    n = torch.Size(shape).numel()
    check(normal(n, n).view(shape))
    check(normal(n, n + 1).mul_(3).exp_().view(shape))
    check(make("random_bits", shape, torch.int32, "cuda", seed=n))


def test_a_few_special_values_among_normal_ones():
    """Buckets that hold NaNs or zeros of both signs are sorted by a kernel of their own."""
    x = normal(1 << 24, 1)
    x[::30_011] = float("nan")
    x[1::40_009] = -0.0
    x[2::50_021] = 0.0
    x[3::70_001] = float("-inf")
    x.view(torch.int32)[4::80_021] = -1  # a NaN with its sign set
    check(x)


def test_buckets_above_the_capacity():
    """Keys that crowd: too few for the samples to see, but more than a bucket takes; in small ranges, so that many are equal."""
    for step, bits in ((1700, 12), (1700, 2), (1000, 16), (2500, 20)):
        x = normal(1 << 24, step)
        crowd = torch.randint(0, 1 << bits, (x[5::step].numel(),), device="cuda", generator=generator_of("cuda", bits))
        x[5::step] = 1.5 + crowd.float() * 2.0**-23
        check(x)


def test_an_input_that_is_not_aligned_and_a_graph():
    x = normal((1 << 23) + 3, 4)[3:]
    check(x)
    gs.sort(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        values, indices = gs.sort(x)
    for replacement in (normal(x.numel(), 5), torch.ones_like(x), torch.rand_like(x), make("zipf", x.numel(), torch.float32, "cuda")):
        x.copy_(replacement)
        graph.replay()
        torch.cuda.synchronize()
        assert_is_stable_sort(x, values, indices, -1, False)
