"""sort_keys: the values of the stable sort and nothing else, bit for bit (equal keys with different bits keep their input order)."""

import numpy as np
import pytest
import torch
from cases import COMPLEX, DTYPES, EDGE_LENGTHS, distributions_of, make, make_rows, name_of
from reference import assert_values, bits_of, comparable, describe, stable_order, strides_of_torch_sort

import torch_gpusort as gs

BOTH = (False, True)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=name_of)


def check(x, dim=-1, descending=False):
    before = bits_of(x)
    values = gs.sort_keys(x, dim, descending)
    assert isinstance(values, torch.Tensor)
    assert_values(x, values, stable_order(x, dim, descending), dim, describe(x, dim, descending))
    assert np.array_equal(bits_of(x), before), "the input was changed"
    return values


@every_dtype
def test_rows_of_every_edge_length(device, dtype):
    for n in EDGE_LENGTHS:
        if n <= 1025 or n % 2 or device.type == "cuda":
            for descending in BOTH:
                check(make_rows(n, dtype, device, seed=1), descending=descending)


@every_dtype
def test_one_dimension(device, dtype):
    for n in (0, 1, 2, 31, 1000, 4097, 24_577, 65_537, 100_003):
        for name in distributions_of(dtype) if n in (1000, 24_577) else ("random_bits", "zipf"):
            for descending in BOTH:
                check(make(name, n, dtype, device), descending=descending)


@every_dtype
def test_dims_and_layouts(device, dtype):
    x = make("zipf", (6, 50, 7), dtype, device)
    for view in (x, x.transpose(0, 2), x[:, ::3, 1:], x[:, :1].expand(6, 50, 7), x.flatten()[1:].as_strided((20, 30), (31, 1))):
        for dim in range(-view.dim(), view.dim()):
            assert check(view, dim, dim % 2 == 0).stride() == strides_of_torch_sort(view, dim)[0]
    for shape in ((), (0,), (1,), (3, 0), (0, 3)):
        for dim in range(-max(1, len(shape)), max(1, len(shape))):
            check(make("uniform", shape, dtype, device), dim)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in COMPLEX], ids=name_of)
def test_millions_of_keys(dtype):
    """Sorted, and the same multiset of bits: counted by torch's own sort of the bit patterns."""
    for n in (2**20 + 1, 10_000_019):
        for name in ("random_bits", "zipf"):
            x = make(name, n, dtype, "cuda")
            for descending in BOTH:
                values = gs.sort_keys(x, descending=descending)
                keys = comparable(values)
                before, after = (keys[1:], keys[:-1]) if descending else (keys[:-1], keys[1:])
                in_order = before <= after
                if keys.is_floating_point():
                    in_order |= after.isnan()
                assert bool(in_order.all()), describe(x, -1, descending)
                signed = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
                assert torch.equal(torch.sort(values.view(signed)).values, torch.sort(x.view(signed)).values), describe(x, -1, descending)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["signed_zeros", "all_nan", "nans"])
def test_equal_keys_keep_their_order_in_millions(name):
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e5m2, torch.float8_e4m3fn):
        check(make(name, 1_500_007, dtype, "cuda"))


@pytest.mark.gpu
@pytest.mark.parametrize("n", [2**20, 2_500_011])
def test_few_zeros_and_nans_keep_their_order_in_millions(n):
    """One key in `rare` has a pattern of its own among equals: both zeros, NaNs of two payloads and signs."""
    for dtype, nan in ((torch.float16, 0x7E01), (torch.bfloat16, 0x7FC1)):
        for rare in (40, 1000, 100_000):
            bits = make("uniform", n, dtype, "cuda").view(torch.int16)
            patterns = torch.tensor([0, -0x8000, nan, nan - 0x8000, nan + 1], dtype=torch.int32, device="cuda").to(torch.int16)
            at = torch.randint(0, n, (n // rare + 2,), device="cuda")
            bits[at] = patterns[torch.randint(0, len(patterns), at.shape, device="cuda")]
            bits[0], bits[-1] = patterns[1], patterns[2]
            for descending in BOTH:
                check(bits.view(dtype), descending=descending)
                check(bits.view(dtype)[1:-2], descending=descending)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [2**17, 2**17 + 5, 3_000_017])
def test_bools_keep_their_bytes_in_millions(n):
    for name in ("uniform", "random_bits", "few_bits", "runs", "all_equal"):
        x = make(name, n, torch.bool, "cuda")
        for descending in BOTH:
            check(x, descending=descending)
            check(x[3:], descending=descending)
    check(torch.zeros(n, dtype=torch.bool, device="cuda"))
