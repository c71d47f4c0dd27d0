"""Long rows at which the radix sort looks at a few keys before it counts their digits: data that is what those keys promise, and data that
is not, by one key."""

import pytest
import torch
from cases import name_of
from reference import assert_is_stable_sort

import torch_gpusort as gs

pytestmark = pytest.mark.gpu

LENGTH = 2**25 + 5
ODD = LENGTH - 3  # a place that no fixed stride meets


def rising(dtype):
    return torch.arange(LENGTH, device="cuda").div(4, rounding_mode="floor").to(dtype)


def small(dtype):
    return torch.randint(0, 64, (LENGTH,), device="cuda", generator=torch.Generator("cuda").manual_seed(3)).to(dtype)


def one_byte(dtype):
    """Integers that differ in their low byte alone, all values of it, in runs."""
    return (rising(dtype) // 37 * 11 % 256) + 0x1200


@pytest.mark.parametrize("dtype", (torch.float32, torch.int32, torch.int64, torch.float64), ids=name_of)
@pytest.mark.parametrize("make_keys", (rising, small, one_byte))
def test_first_look(make_keys, dtype):
    for odd in (None, 0, -1, 0x1300, 2**31 - 1 if dtype is torch.int32 else 2**40):
        keys = make_keys(dtype)
        if odd is not None:
            keys[ODD] = odd
        for descending in (False, True):
            assert_is_stable_sort(keys, *gs.sort(keys, -1, descending), -1, descending)
            assert torch.equal(gs.sort_keys(keys, descending=descending), torch.sort(keys, descending=descending).values)


@pytest.mark.parametrize("dtype", (torch.int32, torch.int64), ids=name_of)
@pytest.mark.parametrize("make_keys", (small, one_byte))
def test_one_byte_with_and_without_values(make_keys, dtype):
    """Only sorts with both outputs and int64 indices go by bytes; the others have no room for it."""
    keys = make_keys(dtype)
    for index_dtype in (torch.int64, torch.int32):
        for descending in (False, True):
            values, indices = gs.sort(keys, -1, descending, index_dtype=index_dtype)
            assert indices.dtype is index_dtype
            assert_is_stable_sort(keys, values, indices, -1, descending)
            assert torch.equal(gs.argsort(keys, -1, descending, index_dtype=index_dtype), indices)


def test_bytes_that_look_like_a_map_that_was_accepted():
    """At 2^25 keys both mapped buckets and the sort by bytes are asked. The first tell by bit 27 of 32 records whether their map holds; the
    workspace of a sort by bytes, laid from its start, would hold these bits where keys want it."""
    x = torch.randint(0, 256, (2**25,), dtype=torch.int32, generator=torch.Generator().manual_seed(1))
    for lane in range(32):
        place = 33027 + 8 * lane
        x[place] = (int(x[place]) & ~8) | ((0x9E3779B9 >> lane & 1) << 3)
    for flip in (0, 0xFF):  # the codes of a descending sort are complements
        keys = (x ^ flip).cuda()
        for descending in (False, True):
            assert_is_stable_sort(keys, *gs.sort(keys, -1, descending), -1, descending)
