"""Inputs that are written anew in place between sorts, which kernels may read before the kernel in front of them has ended: every sort
must see what its input held when its turn in the stream came, never what a cache kept of it.
"""

import pytest
import torch
from cases import make
from reference import assert_stable_sort, assert_values, signed_view, stable_order

import torch_gpusort as gs

# name -> (shape, dtype, what the input holds one after the other, with indices). Buckets that are pulled from ordered tiles, in one row
# and in several; the radix sort; and keys alone of 16 bits, whose zeros and NaNs are read again at the end.
CASES = {
    "a row of buckets": (2**20, torch.float32, ("uniform", "runs", "reversed", "zipf"), True),
    "rows of buckets": ((8, 40_009), torch.float32, ("uniform", "runs", "few_bits", "signed_zeros"), True),
    "wide buckets": (2**20, torch.int64, ("random_bits", "runs", "all_equal", "zipf"), True),
    "passes": (3_000_017, torch.uint16, ("random_bits", "runs", "sorted", "zipf"), True),
    "keys of buckets": (2**20, torch.int32, ("random_bits", "runs", "few_bits", "zipf"), False),
    "halves": (2_000_003, torch.float16, ("nans", "uniform", "signed_zeros", "random_bits"), False),
    "brain floats": (2_000_003, torch.bfloat16, ("signed_zeros", "nans", "random_bits", "infinities"), False),
}
every_case = pytest.mark.parametrize("name", CASES)


def contents_of(name, device):
    shape, dtype, distributions, _ = CASES[name]
    return [make(distribution, shape, dtype, device, seed=i) for i, distribution in enumerate(distributions)]


def call(name, x, descending=False):
    return gs.sort(x, descending=descending) if CASES[name][3] else gs.sort_keys(x, descending=descending)


def check(name, x, result, descending=False):
    order = stable_order(x, descending=descending)
    if CASES[name][3]:
        assert_stable_sort(x, result, descending=descending, order=order)
    else:
        assert_values(x, result, order, -1, name)


def write(buffer, content):
    signed_view(buffer).copy_(signed_view(content))


@every_case
def test_rewritten_between_sorts(device, name):
    contents = contents_of(name, device)
    buffer = torch.empty_like(contents[0])
    results = []
    for _ in range(2):
        for descending, content in enumerate(contents):
            write(buffer, content)
            results.append(call(name, buffer, descending % 2 == 1))
    for i, result in enumerate(results):
        check(name, contents[i % len(contents)], result, i % len(contents) % 2 == 1)


@every_case
def test_the_input_is_the_result_of_the_sort_before(device, name):
    """What wrote it is a kernel of ours that lets the next one start early, and its memory held the result of an older one."""
    contents = contents_of(name, device)
    kept = []
    for content in contents * 2:
        first = call(name, content, True)
        values = first[0] if CASES[name][3] else first
        second = call(name, values)
        kept.append((values.cpu(), second))
        del first, values  # the next sort's results go where these were
    for i, (values, second) in enumerate(kept):
        order = stable_order(contents[i % len(contents)], descending=True)
        assert_values(contents[i % len(contents)], values.to(device), order, -1, name)
        check(name, values.to(device), second)


@pytest.mark.gpu
@every_case
def test_rewritten_inside_a_graph(name):
    contents = contents_of(name, "cuda")
    sources = [torch.empty_like(contents[0]) for _ in range(2)]
    buffer = torch.empty_like(contents[0])

    def work():
        results = []
        for i, source in enumerate(sources * 2):
            write(buffer, source)
            results.append(call(name, buffer, i % 2 == 1))
        return results

    for source, content in zip(sources, contents):
        write(source, content)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = work()
    for pair in ((0, 1), (2, 3), (1, 2)):
        for source, content in zip(sources, pair):
            write(source, contents[content])
        for _ in range(3):
            graph.replay()
        for i, result in enumerate(results):
            check(name, contents[pair[i % 2]], result, i % 2 == 1)
