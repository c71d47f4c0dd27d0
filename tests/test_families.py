"""Every family of sorts by name, and the shapes at which the automatic choice passes from one to the next: proved on the device, over all
distributions, so that ties, runs, NaNs and skew meet each family's own paths."""

import pytest
import torch
from cases import distributions_of, make, name_of
from reference import assert_is_stable_sort

import torch_gpusort as gs

pytestmark = pytest.mark.gpu

# Rows of a cluster and of a block, of the grid sort, of buckets of one, some and many to a row; lengths that no tile divides.
SHAPES = {
    "rows": ((1, 513), (3, 1000), (16, 4095), (200, 2049), (17, 4096), (5, 16_384)),
    "grid": ((1, 4096), (1, 16_385), (4, 32_000), (1, 131_072), (1, 262_144), (8, 20_001)),
    "buckets": ((1, 30_721), (7, 50_257), (40, 50_257), (2, 128_256), (1, 262_145), (3, 400_003), (1, 1_048_576), (1, 3_000_001)),
    "radix": ((1, 100), (40, 5000), (3, 70_001), (1, 300_007), (1, 1_048_577)),
}
DTYPES = (torch.uint8, torch.int16, torch.float16, torch.float32, torch.int32, torch.int64, torch.float64)
REPEATS = 3  # a race shows now and then


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
@pytest.mark.parametrize("family", SHAPES)
def test_families(family, dtype):
    for shape in SHAPES[family]:
        for place, name in enumerate(distributions_of(dtype)):
            x = make(name, shape, dtype, "cuda", seed=place)
            for repeat in range(REPEATS):
                descending = (place + repeat) % 2 == 1
                values, indices = gs.sort(x, -1, descending, algorithm=family)
                assert_is_stable_sort(x, values, indices, -1, descending)


@pytest.mark.parametrize(("length", "tiles"), ((32_768, 64), (65_536, 64), (131_072, 128), (262_144, 128)))
def test_keys_made_against_the_samples_of_the_grid_sort(length, tiles):
    """What csrc/plan/grid_sort_plan.h samples is small, so that one bucket would take nearly all of the row."""
    samples = tiles * 16
    step = (length << 32) // samples
    places = [(i * step >> 32) + (((i + 1) * 2654435769 % 2**32) * (step >> 32) >> 32) for i in range(samples)]
    assert len(set(places)) == samples
    x = torch.randint(1 << 20, 1 << 21, (length,), dtype=torch.int32, device="cuda", generator=torch.Generator("cuda").manual_seed(3))
    x[places] = torch.arange(samples, dtype=torch.int32, device="cuda")
    for repeat in range(REPEATS):
        descending = repeat % 2 == 1
        keys = -x if descending else x
        assert_is_stable_sort(keys, *gs.sort(keys, descending=descending, algorithm="grid"), -1, descending)


@pytest.mark.parametrize("dtype", (torch.float32, torch.int64, torch.float16), ids=name_of)
def test_what_is_chosen_beside_the_crossovers(dtype):
    """Lengths on both sides of every length at which the plan changes its mind, whatever the constants are."""
    for rows in (1, 6, 16, 17, 132, 300):
        before = None
        for length in sorted({step + edge for step in (*range(500, 5000, 500), *range(5000, 40_000, 2500)) for edge in (0, 1)}):
            plan = gs.explain(torch.empty((rows, length), dtype=dtype, device="meta"), device_traits="h200")
            kind = (plan.algorithm, len(plan.steps), plan.steps[0].threads)
            if kind != before:
                x = make("few_bits" if length % 2 else "zipf", (rows, length), dtype, "cuda", seed=rows)
                assert_is_stable_sort(x, *gs.sort(x))
                order = gs.argsort(x, descending=True, index_dtype=torch.int32)
                assert_is_stable_sort(x, None, order, -1, True)
            before = kind


@pytest.mark.parametrize("dtype", (torch.float32, torch.int32, torch.int64, torch.float64), ids=name_of)
def test_long_rows_of_every_kind_of_result(dtype):
    """Rows that are cut into buckets, with values that are not wanted, short indices, a column to sort along, and repeated values."""
    generator = torch.Generator("cuda").manual_seed(7)
    picks = torch.randint(0, 1999, (5, 60_001), device="cuda", generator=generator)
    pool = make("uniform", 1999, dtype, "cuda")
    for x in (make("zipf", (5, 60_001), dtype, "cuda"), pool[picks], make("organ_pipe", (5, 60_001), dtype, "cuda")):
        assert_is_stable_sort(x, *gs.sort(x, index_dtype=torch.int32))
        assert_is_stable_sort(x, None, gs.argsort(x))
        values, indices = gs.sort(x, descending=True)
        assert_is_stable_sort(x, values, indices, -1, True)
        bits = torch.int32 if dtype.itemsize == 4 else torch.int64
        assert torch.equal(gs.sort_keys(x, descending=True).view(bits), values.view(bits))
        column = x.t().contiguous()
        assert_is_stable_sort(column, *gs.sort(column, 0), 0)
