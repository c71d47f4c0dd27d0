"""The measuring tools themselves: a reference that accepted a wrong answer would make every other test worthless."""

import numpy as np
import pytest
import torch
from cases import COMPLEX, DTYPES, FLOATS, distributions_of, make, name_of
from reference import (
    assert_is_stable_sort,
    assert_stable_sort,
    bits_of,
    co_ranks,
    codes_of,
    gather_tensor,
    stable_order,
    stable_order_of_keys,
    window_order,
)


def torch_stable_sort(x, descending=False):
    order = torch.from_numpy(stable_order(x, -1, descending))
    return gather_tensor(x, order, -1), order


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_the_two_proofs_agree_on_every_distribution(dtype):
    for name in distributions_of(dtype):
        for n in (0, 1, 2, 33, 700):
            x = make(name, n, dtype)
            for descending in (False, True):
                values, indices = torch_stable_sort(x, descending)
                assert_stable_sort(x, (values, indices), -1, descending)
                if dtype not in COMPLEX:
                    assert_is_stable_sort(x, values, indices, -1, descending)
                    assert np.array_equal(stable_order_of_keys(codes_of(x), -1, descending), indices.numpy())
                    assert np.array_equal(window_order(x, 0, x.element_size() * 8, -1, descending), indices.numpy())


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in COMPLEX], ids=name_of)
def test_the_same_case_has_the_same_bits(dtype):
    for name in distributions_of(dtype):
        assert np.array_equal(bits_of(make(name, 100, dtype)), bits_of(make(name, 100, dtype)))
    assert not np.array_equal(bits_of(make("random_bits", 100, dtype, seed=0)), bits_of(make("random_bits", 100, dtype, seed=1)))


def test_torch_on_the_cpu_gives_the_same_answers():
    """A second opinion on NumPy: torch's stable CPU sort, where it has the dtype."""
    for dtype in (d for d in DTYPES if (d not in COMPLEX and d.itemsize > 1) or d is torch.int8):
        for name in distributions_of(dtype):
            x = make(name, 600, dtype)
            for descending in (False, True):
                indices = torch.sort(x, stable=True, descending=descending).indices
                assert np.array_equal(indices.numpy(), stable_order(x, -1, descending)), (dtype, name, descending)


def broken_results():
    """(what is wrong, input, wrong values, wrong indices)"""
    x = torch.tensor([3.0, 1.0, 2.0, 1.0, -0.0, 0.0])
    values, order = torch_stable_sort(x)
    swapped = order.clone()
    swapped[2], swapped[3] = order[3], order[2]
    yield "equal elements swapped", x, values, swapped
    yield "the sign of a zero lost", x, values.abs(), order
    yield "the input as it was", x, x.clone(), torch.arange(6)
    yield "an index twice", x, values[[0, 1, 2, 2, 4, 5]], order[[0, 1, 2, 2, 4, 5]]
    yield "an index out of range", x, values, torch.where(order == 5, 6, order)
    nan = torch.tensor([0x7FC00001, 0x7FC00002, 0x3F800000], dtype=torch.int32).view(torch.float32)
    values, order = torch_stable_sort(nan)
    yield "a NaN's payload lost", nan, torch.where(values.isnan(), torch.full_like(values, float("nan")), values), order
    yield "NaN in front", nan, nan, torch.arange(3)
    yield "two NaNs swapped", nan, nan[[2, 1, 0]], torch.tensor([2, 1, 0])


@pytest.mark.parametrize(
    "what, x, values, indices", list(broken_results()), ids=lambda v: v.replace(" ", "_") if isinstance(v, str) else ""
)
def test_a_wrong_result_is_refused(what, x, values, indices):
    with pytest.raises(AssertionError):
        assert_stable_sort(x, (values, indices))
    with pytest.raises((AssertionError, RuntimeError)):
        assert_is_stable_sort(x, values, indices)


def test_codes_of_half_precision_are_exhaustively_monotone():
    for dtype in FLOATS:
        if dtype.itemsize > 2:
            continue
        every = (
            torch.arange(2 ** (8 * dtype.itemsize), dtype=torch.int64).to(torch.int16 if dtype.itemsize == 2 else torch.int8).view(dtype)
        )
        wide, codes = every.to(torch.float32), torch.from_numpy(codes_of(every).astype(np.int64))
        order = stable_order(every)
        assert (codes[order].diff() >= 0).all()
        numbers = order[~wide[order].isnan().numpy()]
        assert torch.equal(codes[numbers].diff() > 0, wide[numbers].diff() > 0)
        assert len(codes[wide.isnan()].unique()) == 1 and codes[wide.isnan()].min() > codes[~wide.isnan()].max()


def test_co_ranks_of_a_small_merge():
    a, b = torch.tensor([1, 3, 3]), torch.tensor([0, 3, 4])
    assert co_ranks(a, b).tolist() == [0, 0, 1, 2, 3, 3, 3]
    assert co_ranks(a.flip(0), b.flip(0), descending=True).tolist() == [0, 0, 1, 2, 2, 3, 3]
