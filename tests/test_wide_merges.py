"""Merge sorts that are large enough for wide stages: runs merged up to 128 at a time, tiles sorted by distribution."""

import pytest
import torch
from cases import distributions_of, make, name_of
from reference import assert_is_stable_sort

import torch_gpusort as gs

pytestmark = pytest.mark.gpu
# Two stages of 32, of 64 and 32 with a last run of a few keys, and of 128 and 64 runs; one stage of 128 and of 50 to a row.
SHAPES = ((6_300_001,), (2**24 + 5,), (2**26 - 8191,), (5, 2**20), (11, 50 * 8192))


def check(x, descending):
    assert_is_stable_sort(x, *gs.merge_sort(x, -1, descending), descending=descending)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.int32, torch.float32], ids=name_of)
def test_every_distribution(dtype):
    for i, distribution in enumerate(distributions_of(dtype)):
        for shape in SHAPES[:2] if i % 2 else SHAPES[3:]:
            check(make(distribution, shape, dtype, "cuda"), descending=i % 3 == 0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape(shape):
    for descending in (False, True):
        for distribution in ("random_bits", "zipf", "sorted", "all_equal"):
            check(make(distribution, shape, torch.float32, "cuda"), descending)


def test_keys_that_crowd_the_bins():
    n = 2**24 + 5
    place = torch.arange(n, device="cuda")
    heavy = make("random_bits", (2000,), torch.int32, "cuda")
    values = {
        "heavy values far apart": heavy[(place * 7919) % 2000],
        "runs that are all alike": (place % 8192).float() / 8192,
        "runs alike but for one": torch.where(place < 8192, 0.5, (place % 8192).float() / 8192),
        "a heavy value between rare ones": torch.where(place % 3 == 0, make("uniform", (n,), torch.float32, "cuda"), 0.25),
        "floats around zero": make("denormals", (n,), torch.float32, "cuda") * (1 - 2 * (place % 2)),
    }
    for x in values.values():
        for descending in (False, True):
            check(x, descending)
