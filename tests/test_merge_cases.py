"""20,000 merges of random lengths, dtypes, directions and patterns, keys alone, with indices and with payloads, by every kernel, bit
for bit against NumPy.

Each case has lengths of its own. A block of cases is made on the host, sent to the device in one piece, so that inputs begin at any
address, merged by one call for each case, and compared when all results are back. GPUSORT_MERGE_CASES sets the number of cases,
GPUSORT_MERGE_SEED the first block's seed. A failure names the block's seed and the case.
"""

import os

import numpy as np
import pytest
import torch
from cases import COMPLEX, DTYPES, INFINITY_BITS, SIGNED_OF_SIZE, element_size
from reference import UNSIGNED_OF_SIZE, codes_of

import torch_gpusort as gs

COUNT = int(os.environ.get("GPUSORT_MERGE_CASES", "20000"))
FIRST = int(os.environ.get("GPUSORT_MERGE_SEED", "0"))
BLOCK = 500
ON_CPU = 300
KEYS = tuple(dtype for dtype in DTYPES if dtype not in COMPLEX)
PAYLOADS = (torch.uint8, torch.int16, torch.float32, torch.int64, torch.complex128)
KERNELS = ("auto", "auto", "auto", "auto", "sequential", "basic", "tiled", "circular")
FORMS = ("keys", "keys", "indices", "payload")
EDGES = (0, 1, 2, 31, 32, 33, 255, 256, 257, 511, 512, 513, 767, 768, 769, 1023, 1024, 1025, 2047, 2048, 2049, 2560, 5119, 5120, 5121)


def random_bits(random, count, size):
    return np.frombuffer(random.bytes(count * size), UNSIGNED_OF_SIZE[size])


def few_values(random, count, size, dtype):
    return random.choice(random_bits(random, int(random.integers(1, 9)), size), count)


def special_values(random, count, size, dtype):
    """Zeros of both signs, the least and the greatest, NaNs of both signs and any payload, infinities and their neighbours."""
    sign, ones = 1 << (size * 8 - 1), (1 << (size * 8)) - 1
    infinity = INFINITY_BITS.get(dtype, 1)
    near = {infinity, infinity - 1, infinity + 1, 0, 1, sign - 1}
    pool = np.array([bits & ones for base in near for bits in (base, base | sign)] + [ones, ones - 1], np.uint64)
    return random.choice(pool, count).astype(UNSIGNED_OF_SIZE[size])


def near_values(random, count, size, dtype):
    """Neighbours in a short range, which may cross zero."""
    start = np.uint64(random_bits(random, 1, size)[0]) if random.random() < 0.7 else np.uint64((1 << (size * 8)) - 100)
    steps = random.integers(0, 200 if random.random() < 0.5 else 40_000, count).astype(np.uint64)
    return (start + steps).astype(UNSIGNED_OF_SIZE[size])


def any_values(random, count, size, dtype):
    return random_bits(random, count, size)


def mixed_values(random, count, size, dtype):
    special = special_values(random, count, size, dtype)
    return np.where(random.random(count) < 0.02, special, random_bits(random, count, size))


VALUES = (any_values, few_values, special_values, near_values, mixed_values)


def random_lengths(random):
    def one():
        if random.random() < 0.3:
            return max(0, int(random.choice(EDGES)) + int(random.integers(-1, 2)))
        return int(2 ** random.uniform(0, 11)) - 1

    lengths = [one(), one()]
    if random.random() < 0.1:
        lengths[int(random.integers(2))] = int(random.choice((0, 1, 2)))
    if random.random() < 0.02:
        lengths[int(random.integers(2))] += int(random.integers(5_000, 60_000))
    return tuple(lengths)


def deal(random, order, m):
    """Which of m + n elements, in the order of the merge, are in a."""
    total = len(order)
    n = total - m
    style = random.integers(5)
    in_a = np.zeros(total, bool)
    if style == 0:
        in_a[:m] = True  # all of a first
    elif style == 1:
        in_a[n:] = True  # all of b first
    elif style == 2 and m and n:  # alternating runs
        length = int(random.integers(1, 400))
        in_a = np.arange(total) // length % 2 == 0
        surplus = int(in_a.sum()) - m
        flip = np.flatnonzero(in_a)[m:] if surplus > 0 else np.flatnonzero(~in_a)[surplus:] if surplus < 0 else []
        in_a[flip] = ~in_a[flip]
    else:
        in_a[random.permutation(total)[:m]] = True
    return in_a


def make_case(random, dtype, descending):
    """(bits of a, bits of b, the order of the merge into their concatenation)."""
    size = element_size(dtype)
    m, n = random_lengths(random)
    values = VALUES[random.integers(len(VALUES))](random, m + n, size, dtype)
    codes = codes_of(torch.from_numpy(values.view(f"i{size}").copy()).view(dtype))
    codes = ~codes if descending else codes
    order = np.argsort(codes, kind="stable")
    in_a = deal(random, order, m)
    both = np.concatenate([order[in_a], order[~in_a]])
    return values[both[:m]], values[both[m:]], np.argsort(codes[both], kind="stable")


def name_case(seed, case, dtype, descending, form, kernel, m, n):
    return f"seed {seed}, case {case}: {dtype}, {m} + {n}, descending {descending}, {form}, {kernel}"


def merge_block(seed, count, device):
    """Runs `count` cases and returns how many that were."""
    random = np.random.default_rng(seed)
    dtype = KEYS[seed % len(KEYS)]
    size, ran = element_size(dtype), 0
    kernels = [str(name) for name in random.choice(KERNELS, count)]
    forms = [str(name) for name in random.choice(FORMS, count)]
    payload_dtypes = [PAYLOADS[i] for i in random.integers(len(PAYLOADS), size=count)]
    directions = [bool(d) for d in random.integers(2, size=count)]
    cases = [make_case(random, dtype, descending) for descending in directions]

    gaps = random.integers(0, 5, 2 * count)
    parts = [part for case in cases for part in case[:2]]
    starts = np.cumsum(gaps) + np.concatenate([[0], np.cumsum([len(part) for part in parts])[:-1]])
    pool = random_bits(random, int(starts[-1]) + len(parts[-1]), size).copy()
    for start, part in zip(starts, parts, strict=True):
        pool[start : start + len(part)] = part
    keys = torch.from_numpy(pool.view(f"i{size}")).to(device).view(dtype)
    longest = max(len(case[0]) + len(case[1]) for case in cases)
    payloads = {d: torch.from_numpy(random_bits(random, 2 * longest * element_size(d), 1).copy()).to(device).view(d) for d in PAYLOADS}

    values, companions = [], []
    for i, (a_bits, b_bits, _) in enumerate(cases):
        a, b = keys[starts[2 * i] :][: len(a_bits)], keys[starts[2 * i + 1] :][: len(b_bits)]
        if forms[i] == "payload":
            carried = payloads[payload_dtypes[i]]
            merged, companion = gs.merge_by_key(a, carried[: len(a)], b, carried[longest:][: len(b)], descending=directions[i])
        elif forms[i] == "indices":
            merged, companion = gs.merge(a, b, descending=directions[i], return_indices=True, kernel=kernels[i])
        else:
            merged, companion = gs.merge(a, b, descending=directions[i], kernel=kernels[i]), None
        assert merged.dtype is dtype and merged.shape == (len(a) + len(b),)
        values.append(merged.view(SIGNED_OF_SIZE[size]))
        if companion is not None:
            companions.append(companion.view(torch.uint8))

    got = torch.cat(values).cpu().numpy().view(UNSIGNED_OF_SIZE[size])
    got_companions = torch.cat([torch.empty(0, dtype=torch.uint8, device=device), *companions]).cpu().numpy()
    host_payloads = {d: payload.view(torch.uint8).cpu().numpy().reshape(2 * longest, -1) for d, payload in payloads.items()}
    done, companions_done = 0, 0
    for i, (a_bits, b_bits, order) in enumerate(cases):
        m, total = len(a_bits), len(a_bits) + len(b_bits)
        what = name_case(seed, i, dtype, directions[i], forms[i], kernels[i], m, total - m)
        assert np.array_equal(got[done : done + total], np.concatenate([a_bits, b_bits])[order]), what
        done += total
        if forms[i] != "keys":
            places = np.where(order < m, order, longest + order - m)
            want = order.astype(np.int64).view(np.uint8) if forms[i] == "indices" else host_payloads[payload_dtypes[i]][places].ravel()
            assert np.array_equal(got_companions[companions_done : companions_done + want.size], want), what
            companions_done += want.size
        ran += 1
    assert companions_done == len(got_companions)
    return ran


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(FIRST, FIRST + -(-COUNT // BLOCK)))
def test_random_merges(seed, record_property):
    ran = merge_block(seed, min(BLOCK, COUNT - (seed - FIRST) * BLOCK), "cuda")
    record_property("cases", ran)
    print(f"{ran} merges")


def test_the_same_on_the_cpu(record_property):
    ran = sum(merge_block(100_000 + i, ON_CPU // len(KEYS), "cpu") for i in range(len(KEYS)))
    record_property("cases", ran)
    print(f"{ran} merges")
    assert ran == ON_CPU // len(KEYS) * len(KEYS)
