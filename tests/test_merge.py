"""merge and merge_by_key: the stable sort of cat(a, b), when both are sorted; some permutation of it when they are not."""

import numpy as np
import pytest
import torch
from cases import COMPLEX, DTYPES, FLOATS, distributions_of, make, name_of, two_sorted
from reference import (
    allowed_options,
    assert_is_stable_sort,
    assert_stable_sort,
    bits_of,
    cat_bits_last,
    gather_tensor,
    signed_view,
    stable_order,
    take_bits,
)

import torch_gpusort as gs

BOTH = (False, True)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
LENGTHS = [
    (0, 0),
    (0, 1),
    (1, 0),
    (1, 1),
    (0, 5000),
    (5000, 0),
    (1, 10_000),
    (10_000, 1),
    (7, 3),
    (33, 31),
    (256, 256),
    (255, 257),
    (1000, 24),
    (2047, 2049),
    (2048, 2048),
    (4095, 4097),
    (100, 20_481),
    (12_345, 6789),
    (40_000, 3),
]


def check(a, b, descending=False, **options):
    """Values and indices against the reference, and values alone against the same."""
    both = cat_bits_last(a, b)
    order = stable_order(both, -1, descending)
    result = gs.merge(a, b, descending=descending, return_indices=True, **options)
    assert_stable_sort(both, result, -1, descending, order=order)
    values = gs.merge(a, b, descending=descending, **options)
    assert isinstance(values, torch.Tensor) and values.shape == both.shape and values.dtype is a.dtype and values.device == a.device
    assert np.array_equal(bits_of(values), take_bits(both, order, -1)), (
        f"keys only: {a.dtype} {tuple(a.shape)} {tuple(b.shape)} descending {descending}"
    )
    return result


@every_dtype
@pytest.mark.parametrize("descending", BOTH)
def test_every_distribution_and_length(device, dtype, descending):
    for i, lengths in enumerate(LENGTHS):
        for name in distributions_of(dtype) if i in (8, 13, 14) else ("random_bits", "zipf", "two_values"):
            check(*two_sorted(lengths, dtype, device, name=name, descending=descending), descending)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float32, torch.int64, torch.complex64], ids=name_of)
def test_inputs_that_do_not_interleave(device, dtype):
    """All of a below b, all of a above b, long alternating runs, everything equal."""
    for m, n in ((1, 1), (500, 700), (3000, 4100), (20_000, 5)):
        both = make("sorted", m + n, dtype, device)
        check(both[:m], both[m:])
        check(both[n:], both[:n])
        down = make("reversed", m + n, dtype, device)
        check(down[:m], down[m:], True)
        check(down[n:], down[:n], True)
        block = torch.arange(m + n, device=device) // 300 % 2 == 0
        if dtype not in COMPLEX:
            bits = signed_view(both)
            check(bits[block].view(dtype), bits[~block].view(dtype))
        for descending in BOTH:
            check(make("all_equal", m, dtype, device), make("all_equal", n, dtype, device), descending)


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
@pytest.mark.parametrize("descending", BOTH)
def test_nan_and_zeros(device, dtype, descending):
    """NaNs of every sign and payload are equal: a's come first, each with its own bits; so with the zeros."""
    for names in (
        ("nans", "nans"),
        ("all_nan", "all_nan"),
        ("all_nan", "uniform"),
        ("uniform", "all_nan"),
        ("signed_zeros", "signed_zeros"),
        ("infinities", "nans"),
    ):
        for lengths in ((1, 1), (3, 5), (700, 900), (3000, 5001)):
            a = two_sorted((lengths[0], 0), dtype, device, name=names[0], descending=descending)[0]
            b = two_sorted((0, lengths[1]), dtype, device, name=names[1], descending=descending)[1]
            check(a, b, descending)


@every_dtype
def test_rows(device, dtype):
    for rows, lengths in (
        ((3,), (100, 57)),
        ((2, 3), (33, 0)),
        ((2, 3), (0, 0)),
        ((0,), (5, 6)),
        ((2, 0, 3), (4, 4)),
        ((5, 1), (1, 1)),
        ((300,), (7, 20)),
        ((3,), (3001, 4099)),
    ):
        for descending in BOTH:
            check(*two_sorted(lengths, dtype, device, name="zipf", rows=rows, descending=descending), descending)


@every_dtype
def test_layouts(device, dtype):
    a, b = two_sorted((400, 300), dtype, device, name="zipf", rows=(6,))
    check(a.transpose(0, 1).contiguous().transpose(0, 1), b)
    check(a[::2, ::3], b[1::2, 5:])
    check(a[:1].expand(6, 400), b)
    check(a[:, 1:], b[:, 3:])
    check(a[0, 1:], b[0, 3:])
    storage = torch.cat([signed_view(a[0])[:1], signed_view(a[0])]).contiguous()
    if dtype not in COMPLEX:
        check(storage[1:].view(dtype), b[0])
    check(a[0, 7:8].expand(50), b[0, 2:3].expand(70))
    check(a, a)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in COMPLEX], ids=name_of)
def test_millions(dtype):
    for lengths in ((1_000_003, 2_000_001), (5, 3_000_000), (2**20, 2**20), (3_000_000, 0)):
        for name in ("random_bits", "two_values"):
            for descending in BOTH:
                a, b = two_sorted(lengths, dtype, "cuda", name=name, descending=descending)
                both = cat_bits_last(a, b)
                values, indices = gs.merge(a, b, descending=descending, return_indices=True)
                assert_is_stable_sort(both, values, indices, descending=descending)
                assert torch.equal(signed_view(gs.merge(a, b, descending=descending)), signed_view(values))


def test_many_random_small_merges(device):
    """Lengths, dtypes and patterns at random."""
    generator = np.random.default_rng(7)
    for trial in range(400):
        dtype = DTYPES[generator.integers(len(DTYPES))]
        name = generator.choice(distributions_of(dtype))
        lengths = tuple(int(generator.integers(1, 10 ** generator.integers(1, 5))) - 1 for _ in range(2))
        descending = bool(generator.integers(2))
        check(*two_sorted(lengths, dtype, device, seed=trial, name=name, descending=descending), descending)


# ---- options


def test_results(device):
    a, b = two_sorted((20, 30), torch.float32, device)
    result = gs.merge(a, b, return_indices=True)
    assert result.values is result[0] and result.indices is result[1]
    assert result.indices.dtype is torch.int64
    one = make("uniform", 1, torch.float32, device)
    for merged in (gs.merge(one, one[:0]), gs.merge(one[:0], one), gs.merge(one, one[:0], return_indices=True).values):
        assert torch.equal(merged, one) and merged.data_ptr() != one.data_ptr()


def test_kernels_by_name(device):
    """Every kernel that the error of a wrong name lists."""
    a, b = two_sorted((3, 2), torch.float32, device)
    kernels = allowed_options(lambda: gs.merge(a, b, kernel="no such"), "kernel")
    assert {"auto", "tiled"} <= set(kernels)
    for kernel in kernels:
        for dtype in (torch.uint8, torch.float16, torch.float32, torch.int64):
            for lengths in LENGTHS:
                check(*two_sorted(lengths, dtype, device, name="zipf"), kernel=kernel)
        for rows, lengths in (((3,), (3001, 4099)), ((50,), (70, 0)), ((2, 2), (5000, 1))):
            for descending in BOTH:
                check(*two_sorted(lengths, torch.float32, device, name="nans", rows=rows, descending=descending), descending, kernel=kernel)
        a, b = make("sorted", 30_000, torch.int32, device).split(10_000)[:2]
        check(a, b, kernel=kernel)
        check(b, a, kernel=kernel)
        unsorted = make("random_bits", 9000, torch.float32, device), make("random_bits", 7000, torch.float32, device, seed=1)
        indices = gs.merge(*unsorted, return_indices=True, kernel=kernel).indices
        assert torch.equal(indices.sort().values.cpu(), torch.arange(16_000)), f"{kernel}: no permutation of an unsorted input"


def test_check_verifies_both_inputs(device):
    good, bad = torch.tensor([1.0, 2.0, 2.0, float("nan")], device=device), torch.tensor([1.0, 3.0, 2.0], device=device)
    check(good, good, check=True)
    check(good.flip(0), good.flip(0), True, check=True)
    check(good[:0], good, check=True)
    for a, b, name in ((good, bad, "b"), (bad, good, "a")):
        with pytest.raises(ValueError, match=rf"\b{name}\b.*sorted"):
            gs.merge(a, b, check=True)
    with pytest.raises(ValueError, match=r"\ba\b.*sorted"):
        gs.merge(good, good.flip(0), descending=True, check=True)
    with pytest.raises(ValueError, match="sorted"):
        gs.merge(torch.tensor([float("nan"), 1.0], device=device), good, check=True)
    rows = good.expand(3, 4).contiguous()
    check(rows, rows, check=True)
    rows[1, 0] = 5
    with pytest.raises(ValueError, match="sorted"):
        gs.merge(rows, good.expand(3, 4), check=True)
    for name in ("all_nan", "signed_zeros"):
        equal = two_sorted((50, 60), torch.float32, device, name=name)
        check(*equal, check=True)
    for dtype in (torch.uint64, torch.uint16, torch.bool, torch.float8_e5m2, torch.complex64):
        check(*two_sorted((300, 200), dtype, device, name="random_bits"), check=True)


@every_dtype
def test_unsorted_input_gives_a_permutation(device, dtype):
    for m, n in ((1, 1), (10, 7), (900, 1100), (5000, 3), (4100, 8200)):
        for name in ("random_bits", "reversed", "organ_pipe"):
            a, b = make(name, m, dtype, device, seed=1), make(name, n, dtype, device, seed=2)
            for descending in BOTH:
                values, indices = gs.merge(a, b, descending=descending, return_indices=True)
                both = cat_bits_last(a, b)
                assert torch.equal(indices.sort().values.cpu(), torch.arange(m + n)), "not a permutation"
                assert np.array_equal(bits_of(values), take_bits(both, indices.cpu().numpy(), -1))
                keys = bits_of(gs.merge(a, b, descending=descending))
                assert np.array_equal(
                    np.sort(keys, axis=0).ravel() if keys.ndim == 1 else np.unique(keys, axis=0),
                    np.sort(bits_of(both), axis=0).ravel() if keys.ndim == 1 else np.unique(bits_of(both), axis=0),
                )


# ---- merge_by_key


def check_by_key(a, b, value_dtype, descending=False):
    a_values, b_values = (
        make("random_bits", a.shape, value_dtype, a.device, seed=8),
        make("random_bits", b.shape, value_dtype, a.device, seed=9),
    )
    keys, values = gs.merge_by_key(a, a_values, b, b_values, descending=descending)
    both, payload = cat_bits_last(a, b), cat_bits_last(a_values, b_values)
    order = stable_order(both, -1, descending)
    assert keys.dtype is a.dtype and values.dtype is value_dtype and keys.shape == values.shape == both.shape and values.device == a.device
    assert np.array_equal(bits_of(keys), take_bits(both, order, -1))
    assert np.array_equal(bits_of(values), take_bits(payload, order, -1))


@every_dtype
def test_merge_by_key_keys_of_every_dtype(device, dtype):
    for lengths in ((0, 0), (1, 0), (3, 9), (300, 200), (2049, 4097), (10_000, 1)):
        for descending in BOTH:
            check_by_key(*two_sorted(lengths, dtype, device, name="zipf", descending=descending), torch.int32, descending)


@every_dtype
def test_merge_by_key_values_of_every_dtype(device, dtype):
    for key in (torch.float32, torch.uint8, torch.int64):
        for lengths in ((0, 3), (33, 31), (3000, 2500)):
            check_by_key(*two_sorted(lengths, key, device, name="two_values"), dtype)
        check_by_key(*two_sorted((120, 77), key, device, name="zipf", rows=(2, 3)), dtype)


def test_merge_by_key_layouts(device):
    a, b = two_sorted((60, 40), torch.float32, device, rows=(4,), name="zipf")
    check_by_key(a[:, ::2], b[:, 3:], torch.float64)
    check_by_key(a[:1].expand(4, 60), b, torch.int8)
    values = make("random_bits", (60, 4), torch.int32, device).t()
    _, merged = gs.merge_by_key(a, values, b, values[:, :1].expand(4, 40))
    order = stable_order(cat_bits_last(a, b))
    assert np.array_equal(merged.cpu().numpy(), take_bits(cat_bits_last(values, values[:, :1].expand(4, 40)), order, -1).view(np.int32))


def test_inputs_are_not_changed(device):
    a, b = two_sorted((500, 600), torch.float32, device, name="nans")
    before = bits_of(a), bits_of(b)
    gs.merge(a, b, return_indices=True)
    gs.merge_by_key(a, a, b, b)
    assert np.array_equal(bits_of(a), before[0]) and np.array_equal(bits_of(b), before[1])


def test_gathering_by_the_indices_gives_the_values(device):
    a, b = two_sorted((3000, 100), torch.int64, device, name="runs")
    values, indices = gs.merge(a, b, return_indices=True)
    assert torch.equal(gather_tensor(cat_bits_last(a, b), indices, -1), values)
