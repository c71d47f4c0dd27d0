"""64-bit keys whose high words tell them apart, or nearly: ties of all sizes and kinds. The sort by high words alone, the repair of its
ties, and the second sort where those are too many meet here; which of them serves a case is decided on the device by a sample."""

import numpy as np
import pytest
import torch
from cases import name_of

import torch_gpusort as gs


def high_words(rng, count, dtype):
    """Random high words that leave numbers finite."""
    words = rng.integers(0, 1 << 32, count, dtype=np.uint64)
    if dtype is torch.float64:
        words = (words & np.uint64(0x800FFFFF)) | np.uint64(0x3FF00000)
    return words


def groups_of(size):
    """Groups of about `size` keys with one high word and any low words."""

    def highs(rng, n, dtype):
        return high_words(rng, n // size + 1, dtype)[rng.integers(0, n // size + 1, n)]

    return highs, lambda rng, n: rng.integers(0, 1 << 32, n)


def equal_but_few(others):
    """Half of the keys are equal, a few more share their high word, and the rest are random."""

    def highs(rng, n, dtype):
        words = high_words(rng, n, dtype)
        words[rng.random(n) < 0.5] = words[0]
        return words

    def lows(rng, n):
        words = np.full(n, 5)
        words[rng.integers(0, n, others)] = rng.integers(0, 11, others)
        return words

    return highs, lows


def exactly(size):
    """One group of `size` keys among random ones."""

    def highs(rng, n, dtype):
        words = high_words(rng, n, dtype)
        words[rng.permutation(n)[:size]] = words[0]
        return words

    return highs, lambda rng, n: rng.integers(0, 1 << 32, n)


def many_long(count, size):
    """`count` groups of `size` keys among random ones."""

    def highs(rng, n, dtype):
        words = high_words(rng, n, dtype)
        words[rng.permutation(n)[: count * size]] = np.repeat(high_words(rng, count, dtype), size)
        return words

    return highs, lambda rng, n: rng.integers(0, 3, n)


def in_groups(lows):
    """Long groups whose low words rise, fall, or are equal."""
    return lambda rng, n, dtype: high_words(rng, 40, dtype)[rng.integers(0, 40, n)], lows


CASES = {
    "none": (lambda rng, n, dtype: high_words(rng, n, dtype), lambda rng, n: rng.integers(0, 1 << 32, n)),
    "pairs": groups_of(2),
    "of 8": groups_of(8),
    "of 32": groups_of(32),
    "of 1000": groups_of(1000),
    "rising": in_groups(lambda rng, n: np.arange(n)),
    "falling": in_groups(lambda rng, n: np.arange(n)[::-1]),
    "equal": in_groups(lambda rng, n: np.full(n, 7)),
    "half equal": equal_but_few(0),
    "half equal but 2": equal_but_few(2),
    "half equal but 3000": equal_but_few(3000),
    **{f"one of {size}": exactly(size) for size in (2, 31, 32, 33, 34, 100, 4095, 4096, 4097, 10_000)},
    "1000 of 40": many_long(1000, 40),
    "40 of 1000": many_long(40, 1000),
}


def expected(x, descending):
    """The order of `x` by NumPy, stable."""
    keys = x.numpy()
    if descending:
        return keys.size - 1 - np.argsort(keys[::-1], kind="stable")[::-1]
    return np.argsort(keys, kind="stable")


@pytest.mark.parametrize("dtype", (torch.int64, torch.float64), ids=name_of)
@pytest.mark.parametrize("name", CASES)
def test_high_word_ties(name, dtype, device):
    highs, lows = CASES[name]
    for n in (65_537,) if device.type == "cpu" else (65_537, 300_001, 1_500_000):
        rng = np.random.default_rng(n)
        bits = highs(rng, n, dtype) << np.uint64(32) | lows(rng, n).astype(np.uint64)
        x = torch.from_numpy(bits.view(np.int64)).view(dtype)
        for descending in (False, True):
            order = torch.from_numpy(expected(x, descending).copy())
            values, indices = gs.radix_sort(x.to(device), descending=descending)
            assert torch.equal(indices.cpu(), order)
            assert torch.equal(values.cpu().view(torch.int64), x[order].view(torch.int64))
            short = gs.sort(x.to(device), -1, descending, algorithm="radix", index_dtype=torch.int32)
            assert torch.equal(short[1].cpu(), order.int())
            assert torch.equal(gs.sort_keys(x.to(device), descending=descending).cpu().view(torch.int64), x[order].view(torch.int64))
