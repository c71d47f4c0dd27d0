"""co_rank: for an output rank k, how many of the first k outputs of the stable merge come from a."""

import numpy as np
import pytest
import torch
from cases import DTYPES, FLOATS, distributions_of, make, name_of, two_sorted
from reference import co_ranks

import torch_gpusort as gs

BOTH = (False, True)


def check(a, b, descending=False):
    k = torch.arange(len(a) + len(b) + 1, device=a.device)
    got = gs.co_rank(k, a, b, descending=descending)
    assert got.dtype is torch.int64 and got.shape == k.shape and got.device == a.device
    assert np.array_equal(got.cpu().numpy(), co_ranks(a, b, descending)), f"{a.dtype} {len(a)} {len(b)} descending {descending}"


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_every_rank_of_every_distribution(device, dtype):
    for name in distributions_of(dtype):
        for lengths in ((0, 0), (0, 4), (4, 0), (1, 1), (7, 30), (300, 200), (1, 2000), (2000, 1)):
            for descending in BOTH:
                check(*two_sorted(lengths, dtype, device, name=name, descending=descending), descending)


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_ties_between_nans_and_between_zeros(device, dtype):
    for name in ("all_nan", "signed_zeros"):
        for descending in BOTH:
            check(*two_sorted((100, 90), dtype, device, name=name, descending=descending), descending)


def test_ties_are_taken_from_a(device):
    five = torch.full((4,), 5, device=device)
    assert gs.co_rank(torch.arange(9, device=device), five, five).tolist() == [0, 1, 2, 3, 4, 4, 4, 4, 4]


def test_shapes_of_k(device):
    a, b = two_sorted((50, 70), torch.float32, device)
    want = torch.from_numpy(co_ranks(a, b)).to(device)
    for k in (
        torch.tensor(33, device=device),
        torch.zeros(0, dtype=torch.int64, device=device),
        torch.arange(120, device=device).view(2, 3, 20),
        torch.arange(120, device=device).view(12, 10).t(),
        torch.tensor([120, 0, 60, 60], device=device),
    ):
        got = gs.co_rank(k, a, b)
        assert got.shape == k.shape and torch.equal(got, want[k])


def test_strided_inputs(device):
    a, b = two_sorted((100, 60), torch.int32, device, name="zipf")
    check(a[::2], b[1::3])
    check(a[3:4].expand(20), b[5:])


def test_co_rank_cuts_a_merge_into_independent_pieces(device):
    """What the merges rest on: the pieces between two ranks, merged alone, are the merge."""
    a, b = two_sorted((5000, 3000), torch.float32, device, name="zipf")
    whole = torch.sort(torch.cat([a, b])).values
    cuts = torch.tensor([0, 1, 999, 4000, 7999, 8000], device=device)
    i = gs.co_rank(cuts, a, b).tolist()
    for p in range(5):
        k0, k1 = int(cuts[p]), int(cuts[p + 1])
        piece = gs.merge(a[i[p] : i[p + 1]], b[k0 - i[p] : k1 - i[p + 1]])
        assert torch.equal(piece, whole[k0:k1])


def test_unsorted_inputs_stay_in_range(device):
    a, b = make("random_bits", 1000, torch.int32, device, seed=1), make("random_bits", 700, torch.int32, device, seed=2)
    k = torch.arange(1701, device=device)
    i = gs.co_rank(k, a, b)
    assert bool(((i >= (k - 700).clamp_min(0)) & (i <= k.clamp_max(1000))).all())


@pytest.mark.gpu
def test_millions():
    a, b = two_sorted((1_000_003, 700_001), torch.float32, "cuda", name="random_bits")
    check(a, b)
