"""Short merges of keys alone, whose tiles are merged from windows around their expected cuts, and those whose cuts lie elsewhere."""

import pytest
import torch
from cases import comparable, distributions_of, make, name_of, two_sorted
from reference import signed_view

import torch_gpusort as gs

DTYPES = (torch.uint8, torch.int16, torch.bfloat16, torch.float32, torch.int64, torch.float64)
TILES = {1: (2048, 5760, 9600, 19_840), 2: (2048, 4608, 8640, 16_320), 4: (2048, 4352, 8064), 8: (1792, 2304, 4352)}  # outputs


def check(a, b, descending=False):
    """Against torch's stable sort of all keys, with one NaN and one zero."""
    both = torch.cat((a, b), -1)
    order = torch.sort(comparable(both) + 0, dim=-1, stable=True, descending=descending).indices
    assert torch.equal(signed_view(gs.merge(a, b, descending=descending)), signed_view(both).gather(-1, order))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_every_distribution(dtype):
    for log_length in (11, 14, 16, 18, 20):
        for i, name in enumerate(distributions_of(dtype)):
            lengths = ((1 << log_length) - i, (1 << log_length) + 3 * i)
            check(*two_sorted(lengths, dtype, "cuda", name=name, descending=i % 2 == 1), i % 2 == 1)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_ends_of_tiles(dtype):
    """Totals around whole tiles, inputs at any alignment, one longer than the other."""
    for tile in TILES[dtype.itemsize]:
        for i, total in enumerate(tiles * tile + keys for tiles in (1, 2, 7, 60) for keys in (-1, 0, 1)):
            first = (total // 2, total // 3, 3 * total // 5, total - total // 4)[i % 4]
            a, b = two_sorted((first + i % 4, total - first + i // 4), dtype, "cuda", seed=i)
            check(a[i % 4 :], b[i // 4 :])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_one_tile(dtype):
    for m, n in ((0, 33), (33, 0), (1, 40), (40, 1), (700, 701), (0, 1700), (1700, 3), (1024, 768)):
        for descending in (False, True):
            check(*two_sorted((m, n), dtype, "cuda", descending=descending), descending)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("log_length", (14, 18, 20))
def test_cuts_outside_their_windows(dtype, log_length):
    """All of a before b, behind it, or only in some places away from where an even mixture has the cuts."""
    n = 1 << log_length
    both = signed_view(make("sorted", 2 * n, dtype, "cuda"))
    even = torch.arange(2 * n, device="cuda") % 2 == 0
    for begin, end in ((0, 2 * n), (0, 200), (n // 2, n), (n - n // 64, n + n // 64), (2 * n - n // 8, 2 * n)):
        of_a = even.clone()
        of_a[begin:end] = torch.arange(end - begin, device="cuda") < (end - begin) // 2
        a, b = both[of_a].view(dtype), both[~of_a].view(dtype)
        check(a, b)
        check(b, a)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_rows(dtype):
    for rows, lengths in ((2, (5000, 5001)), (7, (1 << 14, 1 << 14)), (60, (3000, 2500)), (100, (900, 1000)), (130, (1 << 10, 1 << 10))):
        check(*two_sorted(lengths, dtype, "cuda", name="zipf", rows=(rows,)))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_unsorted_inputs_give_a_permutation(dtype):
    for i, name in enumerate(("random_bits", "reversed", "organ_pipe", "random_bits")):
        for length in (900, 1 << 13, 1 << 16, 1 << 19):
            a, b = make(name, length + i, dtype, "cuda", seed=1), make(name, length - i, dtype, "cuda", seed=2)
            if i == 3:  # sorted but for a few keys
                a, b = a.sort().values, b.sort().values
                a[length // 3], b[length // 2 :: 1000] = a[-1].clone(), b[0].clone()
            merged = gs.merge(a, b)
            assert torch.equal(signed_view(merged).sort().values, signed_view(torch.cat((a, b))).sort().values)
