"""Sizes past 32 bits, proved on the device: a dimension above 2^31, and rows x length above 2^31."""

import gc

import pytest
import torch
from cases import generator_of
from reference import comparable, signed_view

import torch_gpusort as gs

pytestmark = pytest.mark.gpu
N = 2**31 + 5
CHUNK = 2**27


def assert_sorted_by_chunks(x, values, indices, descending=False):
    """The proof of reference.assert_is_stable_sort, a piece at a time, so that it needs little memory beside the tensors themselves."""
    n = x.numel()
    seen = torch.zeros(n, dtype=torch.bool, device=x.device)
    bits, value_bits = signed_view(x), signed_view(values)
    for start in range(0, n, CHUNK):
        stop = min(n, start + CHUNK)
        piece = indices[start:stop].long()
        assert int(piece.min()) >= 0 and int(piece.max()) < n, f"indices outside the input near {start}"
        seen[piece] = True
        assert torch.equal(value_bits[start:stop], bits[piece]), f"values are not the input's bits near {start}"
        reach = min(n, stop + 1)
        keys, order = comparable(values[start:reach]), indices[start:reach]
        before, after = (keys[1:], keys[:-1]) if descending else (keys[:-1], keys[1:])
        rises, equal = before < after, before == after
        if keys.is_floating_point():
            rises |= after.isnan() & ~before.isnan()
            equal |= after.isnan() & before.isnan()
        assert bool((rises | (equal & (order[:-1] < order[1:]))).all()), f"out of order near {start}"
    assert bool(seen.all()), "indices are not a permutation"


def random_large(n, dtype, seed):
    x = torch.empty(n, dtype=dtype, device="cuda")
    signed = signed_view(x)
    for start in range(0, n, CHUNK):
        stop = min(n, start + CHUNK)
        words = torch.empty(-(-(stop - start) * x.element_size() // 8), dtype=torch.int64, device="cuda")
        words.random_(-(2**63), None, generator=generator_of("cuda", seed + start))
        signed[start:stop] = words.view(signed.dtype)[: stop - start]
    return x


@pytest.mark.gpu_memory(60)
def test_uint8_past_int32():
    x = random_large(N, torch.uint8, 1)
    x &= 3
    assert_sorted_by_chunks(x, *gs.sort(x))


@pytest.mark.gpu_memory(100)
def test_float32_past_int32():
    x = random_large(N, torch.float32, 2)
    values, indices = gs.sort(x, descending=True)
    assert indices.dtype is torch.int64
    assert_sorted_by_chunks(x, values, indices, descending=True)


@pytest.mark.gpu_memory(40)
def test_keys_past_int32():
    x = random_large(N, torch.uint8, 3)
    counts = sum(torch.bincount(part, minlength=256) for part in x.split(CHUNK))
    values = gs.sort_keys(x)
    ends = counts.cumsum(0)
    for start in range(0, N, CHUNK):
        place = torch.arange(start, min(N, start + CHUNK), device="cuda")
        assert torch.equal(values[start : start + CHUNK], torch.searchsorted(ends, place, right=True).to(torch.uint8)), (
            f"wrong near {start}"
        )


@pytest.mark.gpu_memory(60)
@pytest.mark.parametrize("rows, length", [(70_000, 32_768), (2**21 + 1, 1024), (3, 2**30 - 1), (2**26 + 1, 33)])
def test_rows_past_int32(rows, length):
    x = random_large(rows * length, torch.uint8, 4).view(rows, length)
    step = max(1, CHUNK // length)
    indices = gs.argsort(x, index_dtype=torch.int32)
    for first in range(0, rows, step * 7 if rows * length > 16 * CHUNK and step > 1 else step):  # every seventh block of rows, and the last
        check_rows(x, indices, first, min(rows, first + step))
    check_rows(x, indices, max(0, rows - step), rows)


def check_rows(x, indices, first, last):
    part, order = x[first:last], indices[first:last].long()
    seen = torch.zeros(part.shape, dtype=torch.bool, device="cuda").scatter_(1, order, True)
    assert bool(seen.all()), f"not a permutation in rows {first} to {last}"
    keys = part.gather(1, order)
    assert bool(((keys[:, :-1] < keys[:, 1:]) | ((keys[:, :-1] == keys[:, 1:]) & (order[:, :-1] < order[:, 1:]))).all()), (
        f"out of order in rows {first} to {last}"
    )


@pytest.mark.gpu_memory(60)
def test_merge_past_int32():
    """0 0 ... 1 1 ... with its steps at places beyond 2^31: each output is known from its place."""
    m, n = 2**31 + 3, 2**30
    a, b = torch.zeros(m, dtype=torch.uint8, device="cuda"), torch.ones(n, dtype=torch.uint8, device="cuda")
    a[-5:] = 2
    b[:7] = 0
    values = gs.merge(a, b)
    zeros, ones = m - 5 + 7, n - 7
    assert values.numel() == m + n
    assert (
        bool((values[:zeros] == 0).all()) and bool((values[zeros : zeros + ones] == 1).all()) and bool((values[zeros + ones :] == 2).all())
    )
    k = torch.tensor([0, 5, m - 5, m - 4, zeros, zeros + ones, m + n - 1, m + n], device="cuda")
    assert gs.co_rank(k, a, b).tolist() == [0, 5, m - 5, m - 5, m - 5, m - 5, m - 1, m]


@pytest.fixture(autouse=True)
def give_memory_back():
    yield
    gc.collect()
    torch.cuda.empty_cache()
