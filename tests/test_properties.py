"""Properties found by Hypothesis: small inputs of any bits, any shape, any option, against the reference; a failing case is made small."""

import numpy as np
import pytest
import torch
from cases import COMPLEX, DTYPES, SIGNED_OF_SIZE, name_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import (
    assert_is_stable_sort,
    assert_stable_sort,
    bits_of,
    cat_bits_last,
    co_ranks,
    gather_tensor,
    stable_order,
    take_bits,
    window_order,
)

import torch_gpusort as gs

REAL = tuple(dtype for dtype in DTYPES if dtype not in COMPLEX)
fast = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@st.composite
def tensors(draw, dtypes=REAL, min_size=0, max_size=80):
    """Raw bits, drawn from a small pool half of the time so that ties occur."""
    dtype = draw(st.sampled_from(dtypes))
    width = dtype.itemsize * 8
    words = st.integers(0, 2**width - 1)
    if draw(st.booleans()):
        words = st.sampled_from(draw(st.lists(words, min_size=1, max_size=4)))
    bits = draw(st.lists(words, min_size=min_size, max_size=max_size))
    unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize]
    signed = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[dtype.itemsize]
    return torch.from_numpy(np.array(bits, dtype=unsigned).view(signed)).view(dtype)


@given(x=tensors(), descending=st.booleans())
@fast
def test_any_bits(device, x, descending):
    x = x.to(device)
    result = gs.sort(x, descending=descending)
    assert_stable_sort(x, result, descending=descending)
    assert_is_stable_sort(x, *result, descending=descending)
    assert np.array_equal(bits_of(gs.sort_keys(x, descending=descending)), bits_of(result.values))


@given(x=tensors(min_size=1), shape=st.lists(st.integers(0, 4), min_size=0, max_size=4), data=st.data())
@fast
def test_any_shape_and_dim(device, x, shape, data):
    signed = x.view(SIGNED_OF_SIZE[x.element_size()])
    count = int(np.prod(shape))
    x = signed.repeat(count // len(signed) + 1)[:count].view(shape).view(x.dtype).to(device)
    permutation = data.draw(st.permutations(range(len(shape))))
    x = x.permute(permutation) if shape else x
    dim = data.draw(st.integers(-max(1, len(shape)), max(1, len(shape)) - 1))
    descending = data.draw(st.booleans())
    assert_stable_sort(x, gs.sort(x, dim, descending), dim, descending)


@given(x=tensors(), bits=st.tuples(st.integers(0, 64), st.integers(0, 64)), descending=st.booleans())
@fast
def test_any_bit_window(device, x, bits, descending):
    begin, end = sorted(min(b, x.element_size() * 8) for b in bits)
    x = x.to(device)
    result = gs.radix_sort(x, descending=descending, begin_bit=begin, end_bit=end)
    assert_stable_sort(x, result, descending=descending, order=window_order(x, begin, end, -1, descending))


@given(x=tensors(min_size=1), cut=st.integers(0, 80), descending=st.booleans())
@fast
def test_any_merge(device, x, cut, descending):
    cut = min(cut, len(x))
    signed = x.view(SIGNED_OF_SIZE[x.element_size()])
    a, b = (part.view(x.dtype) for part in (signed[:cut], signed[cut:]))
    a, b = (gather_tensor(part, stable_order(part, -1, descending), -1).to(device) for part in (a, b))
    both = cat_bits_last(a, b)
    order = stable_order(both, -1, descending)
    assert_stable_sort(both, gs.merge(a, b, descending=descending, return_indices=True, check=True), descending=descending, order=order)
    assert np.array_equal(bits_of(gs.merge(a, b, descending=descending)), take_bits(both, order, -1))
    k = torch.arange(len(both) + 1, device=device)
    assert np.array_equal(gs.co_rank(k, a, b, descending=descending).cpu().numpy(), co_ranks(a, b, descending))


@given(x=tensors(min_size=2, max_size=40))
@fast
def test_sorting_twice_and_mirroring(device, x):
    """Sorting what is sorted changes nothing; descending is the reverse of the ascending sort of the reversed input."""
    x = x.to(device)
    values, _ = gs.sort(x)
    again = gs.sort(values)
    assert np.array_equal(bits_of(again.values), bits_of(values)) and torch.equal(again.indices.cpu(), torch.arange(len(x)))
    signed = SIGNED_OF_SIZE[x.element_size()]
    mirrored = gs.sort(x.view(signed).flip(0).view(x.dtype), descending=True)
    assert np.array_equal(bits_of(mirrored.values), bits_of(values)[::-1])


@pytest.mark.parametrize("dtype", [d for d in REAL if d.itemsize <= 2], ids=name_of)
def test_every_value_of_a_small_type(device, dtype):
    """All 2^8 or 2^16 bit patterns at once, in a fixed shuffle: the whole order of the type."""
    every = (
        torch.randperm(2 ** (8 * dtype.itemsize), generator=torch.Generator().manual_seed(1))
        .to(SIGNED_OF_SIZE[dtype.itemsize])
        .view(dtype)
        .to(device)
    )
    for descending in (False, True):
        assert_stable_sort(every, gs.sort(every, descending=descending), descending=descending)
        rows = every.view(SIGNED_OF_SIZE[dtype.itemsize]).view(16, -1).view(dtype)
        assert_stable_sort(rows, gs.sort(rows, descending=descending), descending=descending)
