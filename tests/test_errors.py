"""Refusals of arguments by their value: dims, options, shapes, devices. Each error has its type, its text names the argument, what it was
and what is allowed, and no memory is left behind, also where it runs out.
"""

# ruff: noqa: B023 (the functions made in loops are called there and then)

import gc

import pytest
import torch
from cases import make, two_sorted
from reference import assert_stable_sort
from refusals import ONE_TENSOR, nothing_is_left_behind, refused  # noqa: F401 (a fixture for all tests here)

import torch_gpusort as gs


@pytest.mark.parametrize("name", ONE_TENSOR)
@pytest.mark.parametrize(
    "shape, dim", [((), 1), ((), -2), ((), 100), ((3,), 1), ((3,), -2), ((2, 3), 2), ((2, 3), -3), ((0,), 1), ((0, 4), 5)], ids=str
)
def test_dim_out_of_range(device, name, shape, dim):
    x = torch.zeros(shape, device=device)
    reach = max(1, len(shape))
    refused(IndexError, lambda: ONE_TENSOR[name](x, dim=dim), "dim", dim, -reach, reach - 1)
    with pytest.raises(IndexError):
        torch.sort(x, dim=dim)


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_index_dtype(device, name):
    x = torch.zeros(10, device=device)
    for wrong in (torch.int16, torch.uint8, torch.float32, torch.bool):
        refused(ValueError, lambda: getattr(gs, name)(x, index_dtype=wrong), "index_dtype", wrong, "int32", "int64")
    with pytest.raises((TypeError, ValueError)):
        getattr(gs, name)(x, index_dtype="int32")
    long = torch.zeros(1, dtype=torch.uint8, device=device).expand(2**31 + 1)
    refused(ValueError, lambda: getattr(gs, name)(long, index_dtype=torch.int32), "index_dtype", "int32", 2**31 + 1, "int64")


def test_algorithm(device):
    x = torch.zeros(10, device=device)
    refused(ValueError, lambda: gs.sort(x, algorithm="quick"), "algorithm", "quick", "auto")
    refused(ValueError, lambda: gs.sort(x, algorithm=""), "algorithm", "auto")


def test_radix_options(device):
    x = torch.zeros(10, dtype=torch.int32, device=device)
    refused(ValueError, lambda: gs.radix_sort(x, kernel="magic"), "kernel", "magic", "auto")
    refused(ValueError, lambda: gs.radix_sort(x, digit_bits=3), "digit_bits", 3, 8)
    refused(ValueError, lambda: gs.radix_sort(x, digit_bits=0), "digit_bits", 0, 8)
    refused(ValueError, lambda: gs.radix_sort(x, begin_bit=-1), "begin_bit", -1, 0, 32)
    refused(ValueError, lambda: gs.radix_sort(x, end_bit=33), "end_bit", 33, 32)
    refused(ValueError, lambda: gs.radix_sort(x, begin_bit=33), "begin_bit", 33)
    refused(ValueError, lambda: gs.radix_sort(x, begin_bit=8, end_bit=4), "begin_bit", 8, "end_bit", 4)
    refused(ValueError, lambda: gs.radix_sort(x.to(torch.uint8), end_bit=9), "end_bit", 9, 8)
    refused(ValueError, lambda: gs.radix_sort(x[:0], end_bit=33), "end_bit", 33, 32)


def test_merge_arguments(device):
    a, b = two_sorted((5, 6), torch.float32, device)
    for merge in (gs.merge, lambda p, q: gs.merge(p, q, return_indices=True), lambda p, q: gs.merge_by_key(p, p, q, q)):
        refused((TypeError, ValueError), lambda: merge(a, b.double()), "float32", "float64")
        refused(ValueError, lambda: merge(a.expand(2, 5), b.expand(3, 6)), "2", "3")
        refused(ValueError, lambda: merge(a, b.expand(1, 6)), "a", "b")
        refused(ValueError, lambda: merge(a[0], b), "a")
        refused(ValueError, lambda: merge(a, b[0]), "b")
        refused(TypeError, lambda: merge(a.view(torch.int32).view(torch.complex32), b.view(torch.int32).view(torch.complex32)), "complex32")
        with pytest.raises(TypeError):
            merge([1.0, 2.0], b)
    refused(ValueError, lambda: gs.merge(a, b, kernel="magic"), "kernel", "magic", "auto", "tiled")


def test_lengths_that_do_not_add_up(device):
    x = torch.zeros(1, dtype=torch.uint8, device=device).expand(1 << 62)
    for call in (lambda: gs.merge(x, x), lambda: gs.merge(x, x, return_indices=True), lambda: gs.co_rank(x[:1].long(), x, x)):
        refused(ValueError, call, "a has", 1 << 62, "b has", "fewer than 2^63 together")
    refused(ValueError, lambda: gs.merge_by_key(x, x, x, x), "a_keys has", 1 << 62, "b_keys has", "fewer than 2^63 together")


def test_merge_by_key_arguments(device):
    a, b = two_sorted((5, 6), torch.float32, device)
    refused(ValueError, lambda: gs.merge_by_key(a, a[:4], b, b), "a_values", 4, 5)
    refused(ValueError, lambda: gs.merge_by_key(a, a, b, b[:3]), "b_values", 3, 6)
    refused((TypeError, ValueError), lambda: gs.merge_by_key(a, a.int(), b, b), "a_values", "b_values", "int32", "float32")


def test_co_rank_arguments(device):
    a, b = two_sorted((5, 6), torch.float32, device)
    k = torch.arange(12, device=device)
    refused((TypeError, ValueError), lambda: gs.co_rank(k.float(), a, b), "k", "float32", "int64")
    refused((TypeError, ValueError), lambda: gs.co_rank(k, a, b.double()), "float32", "float64")
    refused(ValueError, lambda: gs.co_rank(k, a.expand(2, 5), b), "a", 2, 5, "dim")
    refused(ValueError, lambda: gs.co_rank(k, a, b.expand(2, 6)), "b", 2, 6, "dim")
    for outside in (-1, 12, 2**40, -(2**40)):
        try:
            i = gs.co_rank(torch.tensor([outside], device=device), a, b)
        except ValueError as error:
            assert "k" in str(error)
        else:
            assert 0 <= int(i) <= 5, "a rank outside the merge gave a place outside a"


@pytest.mark.gpu
def test_mixed_devices():
    a, b = two_sorted((5, 6), torch.float32, "cuda")
    k = torch.arange(4, device="cuda")
    for call in (
        lambda: gs.merge(a, b.cpu()),
        lambda: gs.merge(a.cpu(), b),
        lambda: gs.merge(a, b.cpu(), return_indices=True),
        lambda: gs.merge_by_key(a, a, b, b.cpu()),
        lambda: gs.merge_by_key(a, a.cpu(), b, b),
        lambda: gs.co_rank(k.cpu(), a, b),
        lambda: gs.co_rank(k, a.cpu(), b),
    ):
        refused(RuntimeError, call, "device", "cpu", "cuda")
    torch.cuda.synchronize()


@pytest.mark.two_gpus
def test_mixed_gpus():
    a, b = two_sorted((5, 6), torch.float32, "cuda:0")
    refused(RuntimeError, lambda: gs.merge(a, b.to("cuda:1")), "device", "cuda:0", "cuda:1")
    refused(RuntimeError, lambda: gs.merge_by_key(a, a, b, b.to("cuda:1")), "device")


def raw_calls(x):
    ops = torch.ops.gpusort
    yield lambda: ops.sort(x, 7)
    yield lambda: ops.sort(x, algorithm="quick")
    yield lambda: ops.sort(x, index_dtype=torch.int16)
    yield lambda: ops.sort_keys(x, -4)
    yield lambda: ops.argsort(x, 2)
    yield lambda: ops.radix_sort(x, begin_bit=-1)
    yield lambda: ops.radix_sort(x, end_bit=65)
    yield lambda: ops.radix_sort(x, algorithm="magic")
    yield lambda: ops.radix_sort(x, digit_bits=9)
    yield lambda: ops.merge(x, x.double())
    yield lambda: ops.merge(x, x[None])
    yield lambda: ops.merge(x, x, algorithm="magic")
    yield lambda: ops.merge_with_indices(x[0], x)
    yield lambda: ops.merge_by_key(x, x[:1], x, x)
    yield lambda: ops.co_rank(x, x, x)
    yield lambda: ops.sort(x.view(torch.int32).view(torch.complex32))
    yield lambda: ops.sort(x.view(torch.uint8).view(torch.float8_e4m3fnuz))


def test_raw_ops_refuse_too(device):
    """The ops themselves check: a call that does not come through Python's functions must not reach a kernel either."""
    x = torch.arange(10.0, device=device)
    for i, call in enumerate(raw_calls(x)):
        with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)):
            call()
            pytest.fail(f"raw call {i} was accepted", pytrace=False)


def test_many_errors_leave_no_memory(device):
    """A leak of one block per error would show after a thousand."""
    x = make("uniform", 100_000, torch.float32, device)
    for _ in range(200):
        for call in (
            lambda: gs.sort(x, dim=3),
            lambda: gs.sort(x, algorithm="no"),
            lambda: gs.radix_sort(x, end_bit=99),
            lambda: gs.merge(x, x.double()),
        ):
            with pytest.raises((IndexError, ValueError, TypeError)):
                call()


@pytest.mark.gpu
def test_out_of_memory_leaves_everything_usable():
    x = make("uniform", 2**26, torch.float32, "cuda")
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.empty_cache()
    held, total = torch.cuda.memory_allocated(), torch.cuda.get_device_properties(0).total_memory
    for call in (lambda: gs.sort(x), lambda: gs.sort_keys(x), lambda: gs.argsort(x), lambda: gs.merge(x, x), lambda: gs.radix_sort(x)):
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (64 << 20)) / total)
        try:
            with pytest.raises(torch.cuda.OutOfMemoryError):
                call()
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        gc.collect()
        assert torch.cuda.memory_allocated() == held
    small = make("uniform", 5000, torch.float32, "cuda")
    assert_stable_sort(small, gs.sort(small))
