"""radix_sort: stable by bits [begin_bit, end_bit) of the order-preserving unsigned key, whole keys and windows of them."""

# ruff: noqa: B023 (the functions made in loops are called there and then)

import numpy as np
import pytest
import torch
from cases import COMPLEX, DTYPES, EDGE_LENGTHS, distributions_of, make, make_rows, name_of
from reference import allowed_options, assert_stable_sort, bits_of, strides_of_torch_sort, window_order

import torch_gpusort as gs

BOTH = (False, True)
REAL = [dtype for dtype in DTYPES if dtype not in COMPLEX]
every_real_dtype = pytest.mark.parametrize("dtype", REAL, ids=name_of)


def check(x, dim=-1, descending=False, begin_bit=0, end_bit=None, **options):
    width = x.element_size() * 8
    result = gs.radix_sort(x, dim, descending, begin_bit=begin_bit, end_bit=end_bit, **options)
    order = window_order(x, begin_bit, width if end_bit is None else end_bit, dim, descending)
    assert_stable_sort(x, result, dim, descending, order=order)
    return result


@every_real_dtype
def test_whole_keys(device, dtype):
    for n in EDGE_LENGTHS:
        if n <= 1025 or n % 2:
            x = make_rows(n, dtype, device, seed=3)
            for descending in BOTH:
                assert_stable_sort(x, gs.radix_sort(x, descending=descending), descending=descending)
    for name in distributions_of(dtype):
        x = make(name, 30_011, dtype, device)
        for descending in BOTH:
            assert_stable_sort(x, gs.radix_sort(x, descending=descending), descending=descending)


def test_a_bound_of_the_values_changes_nothing(device):
    """Right, too small or absurd: a hint never mis-sorts."""
    for dtype in (torch.uint8, torch.int16, torch.int64, torch.uint64, torch.bool):
        x = make("random_bits", 5000, dtype, device)
        for bound in (0, 1, 255, 2**20, 2**63, 10**30):
            assert_stable_sort(x, gs.radix_sort(x, max_value=bound))
    ids = make("ids_below_64", 5000, torch.int64, device)
    assert_stable_sort(ids, gs.radix_sort(ids, descending=True, max_value=63), descending=True)


def windows(width):
    """Bounds at, before and after every digit edge, one bit, all bits, none."""
    yield from (
        (0, width),
        (0, 1),
        (width - 1, width),
        (0, width - 1),
        (1, width),
        (0, width // 2),
        (width // 2, width),
        (3, min(width, 11)),
    )
    if width >= 16:
        yield from ((0, 8), (8, 16), (7, 9), (5, 16), (1, 10), (width - 9, width), (width - 8, width), (width - 3, width - 1))
    if width >= 32:
        yield from ((8, 24), (12, 29), (0, 17), (16, 25))
    if width == 64:
        yield from ((24, 40), (31, 33), (32, 64), (0, 20), (44, 61))


@every_real_dtype
def test_every_window(device, dtype):
    for begin, end in windows(dtype.itemsize * 8):
        for n in (2, 33, 1000, 5000, 26_000):
            for descending in BOTH:
                check(make("random_bits", n, dtype, device), descending=descending, begin_bit=begin, end_bit=end)


@every_real_dtype
def test_windows_of_rows_and_columns(device, dtype):
    for begin, end in list(windows(dtype.itemsize * 8))[:6]:
        x = make_rows(700, dtype, device, seed=4)
        for dim in (0, 1):
            for descending in BOTH:
                values, indices = check(x, dim, descending, begin, end)
        values, indices = check(x.t(), 0, False, begin, end)
        assert (values.stride(), indices.stride()) == strides_of_torch_sort(x.t(), 0)


@every_real_dtype
def test_an_empty_window_is_the_identity(device, dtype):
    width = dtype.itemsize * 8
    for n in (0, 1, 10, 5000, 100_000):
        x = make("random_bits", n, dtype, device)
        for bit in (0, width // 2, width):
            for descending in BOTH:
                values, indices = gs.radix_sort(x, descending=descending, begin_bit=bit, end_bit=bit)
                assert np.array_equal(bits_of(values), bits_of(x)) and torch.equal(indices.cpu(), torch.arange(n))
                assert n == 0 or values.data_ptr() != x.data_ptr()


@every_real_dtype
def test_two_windows_make_a_whole_sort(device, dtype):
    """Sorting by the low half, then by the high half of what came out, sorts: the definition of a radix sort, seen from outside."""
    half = dtype.itemsize * 4
    x = make("random_bits", (3, 4099), dtype, device)
    low = gs.radix_sort(x, end_bit=half)
    high = gs.radix_sort(low.values, begin_bit=half)
    assert_stable_sort(x, (high.values, low.indices.gather(1, high.indices)))


@pytest.mark.parametrize("dtype", COMPLEX, ids=name_of)
def test_complex_has_no_unsigned_key(device, dtype):
    for n in (0, 1, 5000):
        with pytest.raises(TypeError, match=rf"input.*{name_of(dtype)}"):
            gs.radix_sort(make("uniform", n, dtype, device))


def test_kernels_and_digits_by_name(device):
    """Every kernel and every digit size that the errors of wrong ones list."""
    x = torch.zeros(3, dtype=torch.int32, device=device)
    kernels = allowed_options(lambda: gs.radix_sort(x, kernel="no such"), "kernel")
    assert "auto" in kernels
    for kernel in kernels:
        digits = allowed_options(lambda: gs.radix_sort(x, kernel=kernel, digit_bits=3), "digit_bits")
        assert digits
        for digit_bits in (None, *digits):
            for dtype in (torch.uint8, torch.float16, torch.int32, torch.float64):
                for n in (0, 1, 300, 30_000):
                    check(make("random_bits", n, dtype, device), kernel=kernel, digit_bits=digit_bits)
                check(make("random_bits", (3, 5000), dtype, device), -1, True, 1, 7, kernel=kernel, digit_bits=digit_bits)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.int32, torch.int64], ids=name_of)
def test_windows_of_millions(dtype):
    width = dtype.itemsize * 8
    x = make("random_bits", 1_500_001, dtype, "cuda")
    for begin, end in ((0, width // 2), (width // 2, width), (3, width - 1)):
        for descending in BOTH:
            check(x, -1, descending, begin, end)
