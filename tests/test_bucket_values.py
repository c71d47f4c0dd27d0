"""Long rows whose buckets hold few values, or runs of them: each way in which a bucket is sorted, with indices and alone, bit by bit."""

import pytest
import torch
from cases import distributions_of, generator_of, make, name_of
from reference import assert_is_stable_sort, describe, signed_view

import torch_gpusort as gs

pytestmark = pytest.mark.gpu

SHAPES = ((1, 300_001), (6, 50_257), (1, 1_700_003))
DTYPES = (torch.float32, torch.int32, torch.int64, torch.float64)


def check(x):
    for descending in (False, True):
        values, indices = gs.sort(x, descending=descending)
        assert_is_stable_sort(x, values, indices, -1, descending)
        alone = gs.sort_keys(x, descending=descending)
        assert torch.equal(signed_view(alone), signed_view(values)), f"keys alone: {describe(x, -1, descending)}"


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_distribution(shape, dtype):
    for seed, name in enumerate(distributions_of(dtype)):
        check(make(name, shape, dtype, "cuda", seed=seed))


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_runs_of_every_length(shape, dtype):
    """From runs that fill buckets down to those of which a bucket has too many; and runs of zeros of both signs and of NaNs."""
    generator = generator_of("cuda", shape[1])
    for longest in (3, 20, 60, 1000, 40_000):
        lengths = torch.randint(1, longest + 1, (shape[0] * shape[1] * 2 // longest + 1000,), device="cuda", generator=generator)
        for name in ("random_bits", "signed_zeros", "nans") if dtype.is_floating_point else ("random_bits", "extremes", "zipf"):
            values = make(name, lengths.numel(), dtype, "cuda", seed=longest)
            bits = values.view(torch.int32 if dtype.itemsize == 4 else torch.int64).repeat_interleave(lengths)
            check(bits[: shape[0] * shape[1]].view(dtype).view(shape))


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numbers_of_values(shape, dtype):
    """So many values that a bucket has some, some tens or some hundreds of them: neighbours of each other, and far apart."""
    generator = generator_of("cuda", shape[1])
    for count in (2, 7, 31, 200, 999, 5000, 20_000):
        picks = torch.randint(0, count, shape, device="cuda", generator=generator)
        bits = picks + (1 << (dtype.itemsize * 8 - 4))
        check(bits.to(torch.int32 if dtype.itemsize == 4 else torch.int64).view(dtype))
        check(make("random_bits", count, dtype, "cuda", seed=count)[picks])
