"""Memory on the GPU: what a call holds at its peak beyond its results, and that nothing stays after it."""

# ruff: noqa: B023 (the functions made in loops are called there and then)

import gc

import pytest
import torch
from cases import make, two_sorted

import torch_gpusort as gs

pytestmark = pytest.mark.gpu


def extra_bytes(call):
    """Peak bytes beyond what was held before and beyond the results; then nothing but the results may be left."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    held = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    results = call()
    torch.cuda.synchronize()
    peak, after = torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()
    outputs = bytes_of(results)
    # The allocator rounds a block up to 512 bytes, and leaves up to 1 MiB unsplit at the end of one that it cuts from a larger.
    count = len(results) if isinstance(results, tuple) else 1
    assert after - held <= outputs + (2**20 + 512) * count, "more than the results is still held"
    del results
    gc.collect()
    assert torch.cuda.memory_allocated() == held, "the results were not all that was held"
    return peak - held - outputs


def bytes_of(results):
    return sum(t.untyped_storage().nbytes() for t in (results if isinstance(results, tuple) else (results,)))


def requested_bytes(call):
    """What was asked of torch's allocator at the peak beyond the results, without the rounding of blocks."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_stats()["requested_bytes.all.current"]
    results = call()
    torch.cuda.synchronize()
    return torch.cuda.memory_stats()["requested_bytes.all.peak"] - held - bytes_of(results)


# The call, and how explain is asked for it.
CALLS = {
    "sort": (lambda x: gs.sort(x), {}),
    "sort_keys": (lambda x: gs.sort_keys(x), {"indices": False}),
    "argsort": (lambda x: gs.argsort(x), {"values": False}),
    "int32 indices": (lambda x: gs.sort(x, index_dtype=torch.int32), {"index_dtype": torch.int32}),
    "int32 argsort": (lambda x: gs.argsort(x, index_dtype=torch.int32), {"values": False, "index_dtype": torch.int32}),
    "columns": (lambda x: gs.sort(x, 0), {"dim": 0}),
    "merge_sort": (lambda x: gs.merge_sort(x), {"algorithm": "merge"}),
    "bitonic_sort": (lambda x: gs.bitonic_sort(x), {"algorithm": "bitonic"}),
    "sample_sort": (lambda x: gs.sample_sort(x), {"algorithm": "sample"}),
}
SHAPES = [(2**16,), (300_001,), (2**20,), (2**22 + 1,), (2**24,), (2**26,), (64, 70_000), (2000, 3000), (3, 5_000_001)]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_sort_asks_for_the_workspace_that_explain_tells(name, shape):
    call, options = CALLS[name]
    gc.collect()  # what a failed test has left would go while the peak is measured
    for dtype in (torch.uint8, torch.float16, torch.float32, torch.int64, torch.complex64, torch.complex128):
        x = torch.zeros(shape, dtype=dtype, device="cuda")
        assert abs(requested_bytes(lambda: call(x)) - gs.explain(x, **options).workspace_bytes) <= 2048, dtype


@pytest.mark.parametrize("n", [2**20, 2**20 + 1, 2**24, 2**24 + 1, 2**26])
def test_float32_sort_takes_eight_bytes_an_element(n):
    """The records of one buffer, and nothing else."""
    for name in ("uniform", "sorted", "all_equal"):
        x = make(name, n, torch.float32, "cuda")
        for call in (lambda: gs.sort(x), lambda: gs.sort(x, descending=True), lambda: gs.radix_sort(x.view(torch.int32))):
            assert requested_bytes(call) <= 8 * n
            if n % 2**20 == 0:  # blocks of whole MiB need no rounding
                assert extra_bytes(call) <= 8 * n


@pytest.mark.parametrize("n", [2**20, 2**20 + 1, 2**26])
def test_int64_sort_takes_twelve_bytes_an_element(n):
    """Keys and 32-bit indices of one buffer, which begin at multiples of 256 bytes, and nothing else; also where low words are enough."""
    for name in ("uniform", "ids_below_2^20", "sorted", "all_equal"):
        x = make(name, n, torch.int64, "cuda")
        calls = [lambda: gs.radix_sort(x), lambda: gs.radix_sort(x, descending=True), lambda: gs.radix_sort(x.view(torch.float64))]
        if n > 2**24 or n <= 2**20 + 1:  # by passes, and by buckets
            calls.append(lambda: gs.sort(x))
        for call in calls:
            assert requested_bytes(call) <= 12 * n + (256 if n % 64 else 0)
            if n % 2**20 == 0:  # blocks of whole MiB need no rounding
                assert extra_bytes(call) <= 12 * n


@pytest.mark.parametrize("n", [2**24, 2**24 + 1, 2**26])
def test_int32_indices_take_eight_bytes_an_element_and_tables(n):
    """The other buffer of records lies in both results, but for an odd one; without values half of it does."""
    tables = n // 8 + 2**13  # two look-back tables, 2 KiB for each tile of 16384; bins and control words
    x = make("uniform", n, torch.float32, "cuda")
    for descending in (False, True):
        assert requested_bytes(lambda: gs.sort(x, descending=descending, index_dtype=torch.int32)) <= 8 * n + tables
        assert requested_bytes(lambda: gs.argsort(x, descending=descending, index_dtype=torch.int32)) <= 12 * n + tables


@pytest.mark.parametrize("n", [2**13, 2**16, 2**18 - 1, 2**18])
def test_a_sort_in_one_launch_takes_its_words(n):
    """Samples and tables lie in the results. In the workspace: a word to an element, and to each tile."""
    for dtype in (torch.uint8, torch.float16, torch.float32):
        x = make("uniform", n, dtype, "cuda")
        for call in (lambda: gs.sort(x), lambda: gs.argsort(x), lambda: gs.sort(x, index_dtype=torch.int32)):
            assert requested_bytes(call) <= 8 * n + 2**12


@pytest.mark.parametrize(
    "dtype, limit", [(torch.uint8, 8), (torch.float16, 8), (torch.int32, 8), (torch.int64, 16), (torch.float64, 16)], ids=str
)
def test_every_width_stays_below_torch(dtype, limit):
    n = 2**24
    x = make("uniform", n, dtype, "cuda")
    ours = extra_bytes(lambda: gs.sort(x))
    assert ours <= limit * n + 2**22
    assert ours < extra_bytes(lambda: tuple(torch.sort(x, stable=True)))


def test_keys_only_and_argsort_take_no_more_than_sort():
    n = 2**24
    x = make("uniform", n, torch.float32, "cuda")
    assert extra_bytes(lambda: gs.sort_keys(x)) <= 8 * n + 2**22
    assert extra_bytes(lambda: gs.argsort(x)) <= 12 * n + 2**22  # the values that it does not return may lie in its workspace


def test_rows_on_one_chip_need_next_to_nothing():
    for shape in ((2**18, 64), (2**14, 1000), (4096, 4096)):
        x = make("uniform", shape, torch.float32, "cuda")
        assert extra_bytes(lambda: gs.sort(x)) <= x.numel() * 8 + 2**22


def test_merge_needs_next_to_nothing():
    a, b = two_sorted((2**24, 2**23), torch.float32, "cuda")
    for call in (lambda: gs.merge(a, b), lambda: gs.merge(a, b, return_indices=True), lambda: gs.merge_by_key(a, a, b, b)):
        assert extra_bytes(call) <= (len(a) + len(b)) // 4 + 2**22


def test_a_hundred_calls_hold_nothing():
    x = make("uniform", 1_000_000, torch.float32, "cuda")
    a, b = two_sorted((1000, 2000), torch.float32, "cuda")
    gs.sort(x)
    torch.cuda.synchronize()
    gc.collect()
    held = torch.cuda.memory_allocated()
    for _ in range(100):
        gs.sort(x), gs.sort_keys(x.view(1000, 1000)), gs.argsort(x), gs.merge(a, b, return_indices=True), gs.radix_sort(x, end_bit=9)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == held


def test_free_memory_of_the_device_does_not_shrink():
    """Memory outside torch's allocator would be seen here."""
    x = make("uniform", 2**22, torch.float32, "cuda")
    gs.sort(x), gs.sort(x.view(-1, 512)), gs.sort(x.view(512, -1))
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    free = torch.cuda.mem_get_info()[0]
    for _ in range(50):
        gs.sort(x), gs.sort(x.view(-1, 512)), gs.sort(x.view(512, -1)), gs.merge(x, x)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info()[0] >= free - 2**21
