"""The numbers that docstrings and README state: memory, passes, which rows are cut. They are read from there and held against the plan."""

import pathlib
import re
from typing import NamedTuple

import pytest
import torch

import torch_gpusort as gs


def on_meta(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


def docstring(name):
    return " ".join(getattr(gs, name).__doc__.split())


def numbers_in(text, pattern):
    """The numbers that a text has in the places of the pattern's groups."""
    found = re.search(pattern, text)
    assert found, f"there is no {pattern!r}"
    return [float(number) for number in found.groups()]


def stated(name, pattern):
    return numbers_in(docstring(name), pattern)


README = " ".join((pathlib.Path(__file__).resolve().parent.parent / "README.md").read_text().split())


LENGTHS = sorted({int(2 ** (k / 8)) for k in range(8, 288)} | {(1 << k) + step for k in range(37) for step in (-1, 0, 1)})
GRID, MANY, MOST = 6144, 1 << 18, 1 << 36  # one launch over the whole GPU begins and ends; the longest row here
WIDE = (1 << 32) - (1 << 17)  # the longest row of 32-bit positions ("some 2**32")
SHORT = (torch.bool, torch.uint8, torch.bfloat16, torch.float16, torch.int32, torch.float32)
BYTE, HALF, WORD, LONG = (torch.uint8,), (torch.float16, torch.int16), (torch.float32, torch.uint32), (torch.int64, torch.float64)
SINGLE, DOUBLE = (torch.complex64,), (torch.complex128,)
ALONE, PLACES, NARROW = {"indices": False}, {"values": False}, {"index_dtype": torch.int32}

SORT_FEW = r"up to 2\*\*18 elements ([\d.]+) bytes an element for keys to 32 bits and ([\d.]+)"
SORT_MANY = r"above, ([\d.]+) bytes for keys of 32 bits \(([\d.]+) for 16, ([\d.]+) for 8\) and ([\d.]+) for keys of 64"
SORT_WIDE = r"some 2\*\*32 elements ([\d.]+) \(([\d.]+) for 16, ([\d.]+) for 8\) and ([\d.]+)\. With"
SORT_NARROW = r"int32 indices, above 2\*\*18 elements ([\d.]+) bytes for keys of 32 bits and ([\d.]+) for keys of 64\."
COMPLEX = r"Complex: at most ([\d.]+) bytes an element, ([\d.]+) for complex128"
COMPLEX_WIDE = r"complex128, and above some 2\*\*32 elements ([\d.]+) and ([\d.]+)\."
ARGSORT_MANY = r"above, ([\d.]+) bytes an element for keys of 32 bits \(([\d.]+) for 16, ([\d.]+) for 8\) and ([\d.]+) for keys of 64"
ARGSORT_WIDE = r"some 2\*\*32 elements ([\d.]+) \(([\d.]+) for 16, ([\d.]+) for 8\) and ([\d.]+)\."
ARGSORT_NARROW = r"with int32 indices ([\d.]+) for keys of 32"
KEYS_MANY = r"keys, ([\d.]+) bytes an element for 32 bits and ([\d.]+) for 64 \(([\d.]+) for 16, ([\d.]+) for 8\)"
KEYS_WIDE = r"some 2\*\*32 elements ([\d.]+) and ([\d.]+) \(([\d.]+) and ([\d.]+)\)"
BITONIC = r"longer rows ([\d.]+) bytes per element \(([\d.]+) for 64-bit keys"
BITONIC_WIDE = r"\(([\d.]+) for 64-bit keys, and for all of 2\*\*32 elements and more\)"
MERGE = r"tables, at most ([\d.]+) bytes an element \(([\d.]+) for keys of 64 bits\)"
SAMPLE = r"two arrays of (\d+) bytes per element \((\d+) for 64-bit keys\), and the samples and counts, a tenth of that at most"
CUT = r"up to 2\*\*(\d+) keys in a row \(2\*\*(\d+) of 64 bits; 2\*\*(\d+) where values or int64 indices are not wanted, up to about twice"


class Claim(NamedTuple):
    """For each group of the pattern: the most bytes an element in rows longer than `above`, up to `longest`."""

    name: str
    pattern: str
    dtypes: tuple[tuple[torch.dtype, ...], ...]  # of each group
    above: int
    longest: int
    options: dict


FROM_32 = (1 << 32) - 1  # "of 2**32 elements and more"
MEMORY = (
    Claim("sort", SORT_FEW, (SHORT, LONG), 0, MANY, {}),
    Claim("sort", SORT_MANY, (WORD, HALF, BYTE, LONG), MANY, WIDE, {}),
    Claim("sort", SORT_WIDE, (WORD, HALF, BYTE, LONG), WIDE, MOST, {}),
    Claim("sort", SORT_NARROW, (WORD, LONG), MANY, 1 << 31, NARROW),
    *(Claim("sort", COMPLEX, (SINGLE, DOUBLE), 0, WIDE, options) for options in ({}, ALONE, PLACES)),
    *(Claim("sort", COMPLEX_WIDE, (SINGLE, DOUBLE), WIDE, MOST, options) for options in ({}, ALONE, PLACES)),
    Claim("argsort", ARGSORT_MANY, (WORD, HALF, BYTE, LONG), MANY, WIDE, PLACES),
    Claim("argsort", ARGSORT_WIDE, (WORD, HALF, BYTE, LONG), WIDE, MOST, PLACES),
    Claim("argsort", ARGSORT_NARROW, (WORD,), MANY, 1 << 31, PLACES | NARROW),
    Claim("sort_keys", KEYS_MANY, (WORD, LONG, HALF, BYTE), MANY, WIDE, ALONE),
    Claim("sort_keys", KEYS_WIDE, (WORD, LONG, HALF, BYTE), WIDE, MOST, ALONE),
    Claim("bitonic_sort", BITONIC, (SHORT, LONG), 1 << 17, FROM_32, {"algorithm": "bitonic"}),
    Claim("bitonic_sort", BITONIC_WIDE, ((*SHORT, *LONG),), FROM_32, MOST, {"algorithm": "bitonic"}),
    Claim("merge_sort", MERGE, (SHORT, LONG), 0, WIDE, {"algorithm": "merge"}),
)


def most_bytes(dtypes, above, longest, options):
    """Of the workspace of a 1-D input, for each element."""
    return max(
        gs.explain(on_meta(n, dtype=dtype), **options).workspace_bytes / n for dtype in dtypes for n in LENGTHS if above < n <= longest
    )


@pytest.mark.parametrize("claim", MEMORY, ids=lambda claim: f"{claim.name}-{claim.above}-{'-'.join(claim.options)}")
def test_memory_an_element(claim):
    """What is said is the plan's number, rounded up to a tenth of a byte."""
    numbers = stated(claim.name, claim.pattern)
    assert len(numbers) == len(claim.dtypes)
    for number, dtypes in zip(numbers, claim.dtypes):
        most = most_bytes(dtypes, claim.above, claim.longest, claim.options)
        assert number - 0.1 < most <= number + 0.01, (dtypes, number, most)


def test_short_sorts_take_none():
    (least,) = stated("sort", r"none below (\d+) elements")
    assert least == GRID
    for dtype in (*SHORT, *LONG):
        for options in ({}, ALONE, PLACES, NARROW):
            assert most_bytes((dtype,), 0, GRID - 1, options) == 0 < gs.explain(on_meta(GRID, dtype=dtype), **options).workspace_bytes


def test_argsort_and_sort_keys_of_few_are_as_the_sort():
    few = stated("sort", SORT_FEW)
    assert "as :func:`sort` up to 2**18 elements, and for complex numbers;" in docstring("argsort")
    (byte,) = stated("sort_keys", r"sort` up to 2\*\*18 elements \(([\d.]+) bytes an element for keys of 8 bits\), and for complex")
    for number, dtypes, options in (
        *zip(few, (SHORT, LONG), (PLACES, PLACES)),
        *zip((*few, byte), ((*HALF, *WORD), LONG, (*BYTE, torch.bool)), (ALONE, ALONE, ALONE)),
    ):
        assert number - 0.1 < most_bytes(dtypes, 0, MANY, options) <= number, (dtypes, options)


def test_memory_of_the_radix_kernels():
    word, long, kilobytes, more = stated(
        "radix_sort",
        r"bits, (\d+) bytes an element for keys of 32 bits and (\d+) for keys of 64, and tables of at most (\d+) KB; with the other "
        r"kernels twice that, and at most ([\d.]+) bytes more",
    )
    lengths = [n for n in LENGTHS if n <= WIDE]
    largest = []
    for each, dtypes in ((word, WORD), (long, LONG)):
        for dtype in dtypes:
            largest += [gs.explain(on_meta(n, dtype=dtype), algorithm="radix").workspace_bytes - each * n for n in lengths]
            for kernel in ("scan_scatter", "block"):
                options = {"algorithm": "radix", "kernel": kernel}
                for n in lengths:
                    assert gs.explain(on_meta(n, dtype=dtype), **options).workspace_bytes <= (2 * each + more) * n + 1e3 * kilobytes
            assert most_bytes((dtype,), 1 << 20, WIDE, {"algorithm": "radix", "kernel": "scan_scatter"}) > 0.95 * (2 * each + more)
    assert 0.95e3 * kilobytes < max(largest) <= 1e3 * kilobytes


def test_memory_of_the_other_sorts():
    """What is said in words: twice, and a tenth of that."""
    numbers = stated("merge_sort", MERGE + r"\. Without int64 indices to work in, twice that")
    for number, dtypes in zip(numbers, (SHORT, LONG)):
        for options in (ALONE, NARROW):
            most = most_bytes(dtypes, 0, 1 << 31, {"algorithm": "merge", **options})
            assert 0.95 * 2 * number < most <= 2 * number
    numbers = stated("sample_sort", SAMPLE)
    for number, dtypes in zip(numbers, (SHORT, LONG)):
        assert 0.95 * 1.1 * 2 * number < most_bytes(dtypes, 0, WIDE, {"algorithm": "sample"}) <= 1.1 * 2 * number
    for name, lengths in (("merge_sort", (1 << 13,)), ("bitonic_sort", (1 << 13, 1 << 12))):
        for n, dtypes in zip((lengths * 2)[:2], (SHORT, LONG)):
            algorithm = name.removesuffix("_sort")
            assert f"{n}" in docstring(name) and most_bytes(dtypes, 0, n, {"algorithm": algorithm}) == 0


def test_how_often_merge_sort_moves_the_data():
    words = docstring("merge_sort")
    assert "for keys to 32 bits, from some 6 million elements on, up to 128" in words
    assert "2**26 elements cross memory three times, four times with keys of 64 bits" in words
    n = 1 << 26
    steps = {dtype: gs.explain(on_meta(n, dtype=dtype), algorithm="merge").steps for dtype in (torch.float32, torch.int64)}
    assert (len(steps[torch.float32]), len(steps[torch.int64])) == (3, 4)
    assert "128 runs by a sample" in steps[torch.float32][1].name
    sampled = [k for k in range(14, 31) if "sample" in str(gs.explain(on_meta(1 << k), algorithm="merge"))]
    assert sampled == list(range(23, 31))
    assert ["sample" in str(gs.explain(on_meta(n), algorithm="merge")) for n in (6_000_000, 6_500_000)] == [False, True]


def cuts(rows, length, dtype=torch.float32, **options):
    """How often rows are cut before they are sorted on chip, 0 by the sorts that do not."""
    plan = gs.explain(on_meta(rows, length, dtype=dtype), **options)
    if plan.algorithm != "buckets":
        return 0
    return 2 if plan.steps[0].name.startswith("spread") else 1


def test_which_rows_are_cut():
    word, long, less = stated("sort", CUT)
    for rows in (17, 100):
        for power, dtypes, options in (
            (word, WORD, ({},)),
            (long, LONG, ({},)),
            (less, (*WORD, *LONG), (ALONE, PLACES, NARROW)),
        ):
            for dtype in dtypes:
                for some in options:
                    n = 1 << int(power)
                    assert (cuts(rows, n, dtype, **some), cuts(rows, n + 1, dtype, **some)) == (1, 0)
    for dtype in (*WORD, *LONG):
        for options in (ALONE, PLACES, NARROW):
            longest = max(n for n in range(1 << 20, 1 << 22, 1 << 14) if cuts(1, n, dtype, **options))
            assert 1 << int(less) <= longest <= 2.1 * (1 << int(less))
    for dtype in (*BYTE, *HALF):
        assert not any(cuts(rows, n, dtype, **options) for rows in (1, 100) for n in LENGTHS for options in ({}, ALONE, PLACES))


def test_which_rows_are_cut_twice():
    few, some, most_rows, shorter, least_in_all, most_in_all, from_rows, to_rows, short = map(
        int,
        stated(
            "sort",
            r"twice, for values and int64 indices: 1 to (\d+) rows, and (\d+) to (\d+) rows of up to 2\*\*(\d+) keys, of 2\*\*(\d+) to "
            r"2\*\*(\d+) keys in all, and (\d+) to (\d+) rows of 2\*\*(\d+); with compute capability 9.0 or newer",
        ),
    )
    assert some == few + 1
    lengths = {int(2 ** (k / 16)) for k in range(16 * 21, 16 * 28)} | {(1 << k) + step for k in range(21, 29) for step in (-1, 0, 10_000)}
    for rows in range(1, 21):
        for n in lengths:
            long = n > 1 << short and 1 << least_in_all <= rows * n <= 1 << most_in_all
            long = long and (rows <= few or (rows <= most_rows and n <= 1 << shorter))
            many = from_rows <= rows <= to_rows and n == 1 << short
            assert (cuts(rows, n) == 2) == (long or many), (rows, n)
    length, in_all = map(int, stated("sort", r"Integers, which often do: rows of up to 2\*\*(\d+), 2\*\*(\d+) in all"))
    for dtype in (torch.int32, torch.uint32):
        assert (cuts(1, 1 << length, dtype), cuts(1, (1 << length) + 1, dtype)) == (2, 0)
        assert (cuts(4, 1 << (in_all - 2), dtype), cuts(4, (1 << (in_all - 2)) + 1, dtype)) == (2, 0)
    n = 1 << 24
    assert [cuts(1, n, dtype) for dtype in (torch.int32, torch.uint32, torch.int64, torch.float16)] == [2, 2, 0, 0]
    assert not any(cuts(1, n, **options) for options in (ALONE, PLACES, NARROW, {"device_traits": "a100"}))


def test_memory_of_single_rows_in_the_readme():
    each, megabytes = numbers_in(README, r"take ([\d.]+) extra bytes an element of 32 bits \(([\d.]+) MB at 2\^15\)")
    taken = {k: gs.explain(on_meta(1 << k)).workspace_bytes for k in range(13, 19)}
    assert all(round(taken[k] / (1 << k), 1) == each for k in taken) and round(taken[15] / 1e6, 2) == megabytes


def test_int32_indices_in_the_readme():
    least, most = numbers_in(README, r"torch.int32`: half the memory of that result, and ([\d.]+) to ([\d.]+) bytes an element of 32 bits")
    taken = [gs.explain(on_meta(n), **NARROW).workspace_bytes / n for n in LENGTHS if GRID <= n <= 1 << 31]
    assert least - 0.01 <= min(taken) < least + 0.1 and most - 0.1 < max(taken) <= most
    first, last = numbers_in(README, r"with int32 the radix sort takes their place from some 2\^(\d+) keys of 32 bits to 2\^(\d+)")
    other = [n for n in LENGTHS if n > GRID and cuts(1, n) > 0 == cuts(1, n, **NARROW)]
    assert 1 << int(first) <= other[0] <= 1.1 * (1 << int(first)) and other[-1] == 1 << int(last)
