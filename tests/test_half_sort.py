"""Long rows of 16-bit keys with indices: what their sort decides on the device (few patterns, sorted rows), and the sizes at which it
changes its tiles and launches. Bit for bit, against the stable order.
"""

import pytest
import torch
from cases import make, name_of
from reference import assert_is_stable_sort, assert_stable_sort

import torch_gpusort as gs

pytestmark = pytest.mark.gpu

HALVES = (torch.float16, torch.bfloat16, torch.int16)
SPECIAL = {  # both zeros, infinities, NaNs of both signs and several payloads, the smallest numbers
    torch.float16: (0x0000, 0x8000, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFE02, 0xFFFF, 0x0001, 0x8001),
    torch.bfloat16: (0x0000, 0x8000, 0x7F80, 0xFF80, 0x7F81, 0x7FC0, 0xFFC2, 0xFFFF, 0x0001, 0x8001),
    torch.int16: (0x0000, 0x8000, 0x7FFF, 0xFFFF, 0x0001, 0x8001),
}
every_half = pytest.mark.parametrize("dtype", HALVES, ids=name_of)


def drawn_from(patterns, count, dtype, seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    table = torch.tensor([p - 0x10000 if p >= 0x8000 else p for p in patterns], dtype=torch.int16, device="cuda")
    return table[torch.randint(len(patterns), (count,), generator=generator, device="cuda")].view(dtype)


def check(x):
    for descending in (False, True):
        assert_stable_sort(x, gs.sort(x, descending=descending), descending=descending)


@every_half
@pytest.mark.parametrize("count", [300_001, 2**20, 2**20 + 1, 2_200_001, 5_000_011])
def test_few_patterns_keep_their_bits(dtype, count):
    check(drawn_from(SPECIAL[dtype], count, dtype))


@every_half
@pytest.mark.parametrize("patterns", [2, 255, 256, 257, 300])
def test_as_many_patterns_as_one_partition_tells_apart(dtype, patterns):
    check(drawn_from([5 + 211 * i for i in range(patterns)], 5_000_011, dtype))


@every_half
def test_a_pattern_that_no_sample_has_seen(dtype):
    for place in (0, 1, 3_000_001, 5_000_010):
        x = drawn_from((0x1234, 0x4321), 5_000_011, dtype)
        x.view(torch.int16)[place] = 0x0123
        check(x)


@every_half
@pytest.mark.parametrize("count", [2**19, 1_081_344, 1_081_345, 2_162_688, 2_162_689, 4_325_377, 6_000_000])
def test_sizes_at_which_tiles_change(dtype, count):
    for name in ("random_bits", "runs", "sorted"):
        check(make(name, count, dtype, "cuda"))


@every_half
@pytest.mark.parametrize("count", [2**25, 2**26 + 12_345])
def test_rows_so_long_that_blocks_have_fewer_threads_or_keep_ranks(dtype, count):
    for name in ("random_bits", "runs", "zipf"):
        x = make(name, count, dtype, "cuda")
        assert_is_stable_sort(x, *gs.sort(x, descending=name == "runs"), descending=name == "runs")


@every_half
def test_one_key_out_of_order(dtype):
    for count in (2**20, 5_000_000):
        for place in (1, count // 3, count - 1):
            x = make("sorted", count, dtype, "cuda").clone()
            x[place] = x[0] if place == count - 1 else x[count - 1]
            check(x)


@every_half
def test_misaligned_keys_and_narrow_indices(dtype):
    for offset in (1, 3, 7):
        x = make("random_bits", 5_000_000, dtype, "cuda")[offset:]
        assert_stable_sort(x, gs.sort(x, index_dtype=torch.int32), index_dtype=torch.int32)
        assert torch.equal(gs.argsort(x), gs.sort(x).indices)
