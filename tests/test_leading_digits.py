"""64-bit keys whose leading digits leave only small groups together, or nearly: random ones, with groups of all sizes, and few live bits.
They are sorted by two to four digits, and the groups are put in order afterwards; for which keys is decided on the device by a sample.
Groups that turn out to be long are ordered by whole blocks, or all keys are sorted again."""

import numpy as np
import pytest
import torch
from cases import name_of
from workspace_after import words_left

import torch_gpusort as gs

LOW = np.uint64((1 << 40) - 1)


def random_bits(rng, n):
    return rng.integers(0, 1 << 64, n, dtype=np.uint64)


def in_groups(size, lows=1 << 40):
    """About `size` keys with the same leading 24 bits, the others below `lows`."""

    def make(rng, n):
        leading = random_bits(rng, n // size + 1) & ~LOW
        return leading[rng.integers(0, n // size + 1, n)] | rng.integers(0, lows, n, dtype=np.uint64)

    return make


def exactly(size, count=1, lows=1 << 40, rest=40):
    """`count` groups of `size` keys each, which agree but for `rest` bits, among random ones."""

    def make(rng, n):
        bits = random_bits(rng, n)
        places = rng.permutation(n)[: count * size]
        leading = np.repeat(random_bits(rng, count) >> np.uint64(rest) << np.uint64(rest), size)[: places.size]
        bits[places] = leading | rng.integers(0, lows, places.size, dtype=np.uint64)
        return bits

    return make


def triangle(rng, n):
    return (random_bits(rng, n) >> np.uint64(1)) + (random_bits(rng, n) >> np.uint64(1))


def masked(mask):
    return lambda rng, n: random_bits(rng, n) & np.uint64(mask)


def falling_groups(rng, n):
    """Groups of 40 whose keys stand in falling order."""
    places = np.arange(n, dtype=np.uint64)
    return (places // np.uint64(40)) * np.uint64(0x9E3779B1) << np.uint64(40) | (LOW - places)


CASES = {
    "random": random_bits,
    **{f"of {size}": in_groups(size) for size in (2, 5, 16, 30, 64, 300)},
    **{f"of {size}, few differ": in_groups(size, 3) for size in (2, 16)},
    **{f"one of {size}": exactly(size) for size in (32, 33, 63, 64, 65, 66, 100, 4096, 4097, 10_000)},
    **{f"300 of {size}": exactly(size, 300) for size in (63, 64, 65, 128)},
    **{f"one of {size}, two digits": exactly(size, 1, 1 << 48, 48) for size in (480, 512, 600, 1100, 3584, 4500)},
    "40 of 700, two digits": exactly(700, 40, 1 << 48, 48),
    "40 of 700 around one key": exactly(700, 40, 1 << 10, 48),
    "100 of 200 equal": exactly(200, 100, 1, 0),
    "5000 of 3 equal": exactly(3, 5000, 1, 0),
    "triangle": triangle,
    "zeros between": masked(0xFFFFFF000000FFFF),
    "zeros between two digits and one": masked(0xFFFFF000000000FF),
    "long and equal": exactly(5000, 1, 1),
    "long, two values": exactly(3000, 3, 2),
    "falling": falling_groups,
    "62 bits": masked((1 << 62) - 1),
    "48 bits": masked((1 << 48) - 1),
    "40 bits": masked((1 << 40) - 1),
    "five digits": masked(0xFF00FFFF00FF00FF),
    "leading digits alone": masked(0xFFFFFF0000000000),
}


def check(x, device):
    for descending in (False, True):
        keys = x.numpy()
        order = np.argsort(keys, kind="stable")
        if descending:
            order = keys.size - 1 - np.argsort(keys[::-1], kind="stable")[::-1]
        order = torch.from_numpy(order.copy())
        expected = x[order].view(torch.int64)
        values, indices = gs.radix_sort(x.to(device), descending=descending)
        assert torch.equal(indices.cpu(), order)
        assert torch.equal(values.cpu().view(torch.int64), expected)
        short = gs.sort(x.to(device), -1, descending, algorithm="radix", index_dtype=torch.int32)
        assert torch.equal(short[1].cpu(), order.int())
        assert torch.equal(gs.sort_keys(x.to(device), descending=descending).cpu().view(torch.int64), expected)


def lengths(device):
    return (20_001,) if device.type == "cpu" else (4096, 65_537, 300_001, 1_500_000)


@pytest.mark.parametrize("name", CASES)
def test_groups_of_leading_digits(name, device):
    for n in lengths(device):
        bits = CASES[name](np.random.default_rng(n), n)
        check(torch.from_numpy(bits.view(np.int64)), device)


WAYS = {  # the lowest bit that is sorted by, and who orders the groups that are left: nobody, by records, by windows
    "random": (random_bits, 48, 2),
    "62 bits": (masked((1 << 62) - 1), 48, 2),
    "40 bits": (masked((1 << 40) - 1), 24, 2),
    "12 bits in two digits": (masked((1 << 60) - 1), 40, 1),
    "low words": (masked((1 << 32) - 1), 0, 0),
    "half zeros": (lambda rng, n: random_bits(rng, n) * rng.integers(0, 2, n, dtype=np.uint64), 32, 0),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", WAYS)
def test_the_way_that_the_sample_chooses(name):
    make, lowest, small_groups = WAYS[name]
    n = 3_000_000
    x = torch.from_numpy(make(np.random.default_rng(5), n).view(np.int64)).cuda()
    for index_dtype in (torch.int32, None):  # None: keys alone. Control words lie in the workspace in both cases
        indices = index_dtype is not None
        workspace = gs.explain(x, algorithm="radix", index_dtype=index_dtype, indices=indices).workspace_bytes
        if indices:
            words, _ = words_left(lambda: gs.sort(x, algorithm="radix", index_dtype=torch.int32), workspace)
        else:
            words, _ = words_left(lambda: gs.sort_keys(x), workspace)
        assert words[2] == 1, "some key is smaller than the one before it"
        assert tuple(words[4:6]) == (lowest, small_groups)
        assert words[7] == 0, "all keys have been sorted again"


@pytest.mark.parametrize("scale", (1.0, 1e-300), ids=str)
def test_floats_between_minus_and_plus(scale, device):
    """Most of them share their exponents: four digits, and groups of up to dozens."""
    for n in lengths(device):
        check(torch.from_numpy(np.random.default_rng(n).uniform(-scale, scale, n)), device)


@pytest.mark.parametrize("dtype", (torch.int64, torch.float64), ids=name_of)
def test_keys_that_begin_anywhere(dtype, device):
    """Inputs aligned to 8 bytes alone."""
    n = lengths(device)[-1]
    bits = random_bits(np.random.default_rng(3), n + 1) & np.uint64(0xFFEFFFFFFFFFFFFF)  # no NaN among the floats
    x = torch.from_numpy(bits.view(np.int64)).view(dtype).to(device)[1:]
    values, indices = gs.radix_sort(x)
    order = torch.from_numpy(np.argsort(x.cpu().numpy(), kind="stable"))
    assert torch.equal(indices.cpu(), order)
    assert torch.equal(values.cpu().view(torch.int64), x.cpu()[order].view(torch.int64))


def test_a_first_look_sees_one_high_word_and_the_sample_more(device):
    """Long rows get a first look at regular places, which finds one high word here; the sample finds others, and nearly all keys are equal
    but one of their high word, so that all are sorted again in the end."""
    n = 20_001 if device.type == "cpu" else (1 << 25) + 3
    rng = np.random.default_rng(7)
    stride = n // 1024
    keys = np.full(n, (3 << 32) + 5)
    others = rng.integers(0, n, n // 500)
    others = others[(others % stride > 1) & (others < n - 1)]
    keys[others] = rng.integers(-(1 << 63), 1 << 63, others.size)
    keys[stride * 500] += 1
    check(torch.from_numpy(keys), device)
