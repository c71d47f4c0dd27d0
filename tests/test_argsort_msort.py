"""argsort and msort: the one the indices, the other the values (along dim 0) of the stable sort."""

import inspect

import pytest
import torch
from cases import DTYPES, EDGE_LENGTHS, FEW_LENGTHS, make, make_rows, name_of
from reference import assert_indices, assert_is_stable_sort, assert_values, describe, stable_order, strides_of_torch_sort

import torch_gpusort as gs

BOTH = (False, True)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=name_of)


def check_argsort(x, dim=-1, descending=False, **options):
    indices = gs.argsort(x, dim, descending, **options)
    assert_indices(x, indices, stable_order(x, dim, descending), describe(x, dim, descending), options.get("index_dtype") or torch.int64)
    return indices


def check_msort(x):
    values = gs.msort(x)
    assert_values(x, values, stable_order(x, 0) if x.dim() else 0, 0, describe(x, 0, False))


@every_dtype
def test_argsort_of_rows(device, dtype):
    for n in EDGE_LENGTHS:
        if n <= 1025 or n % 2 or device.type == "cuda":
            check_argsort(make_rows(n, dtype, device, seed=2), descending=bool(n % 3))
    for n in (20_000, 65_537, 100_001):
        for descending in BOTH:
            check_argsort(make("zipf", n, dtype, device), descending=descending)


@every_dtype
def test_argsort_arguments(device, dtype):
    for n in FEW_LENGTHS:
        x = make("two_values", (4, n), dtype, device)
        for dim in (-2, -1, 0, 1):
            for index_dtype in (None, torch.int32, torch.int64):
                indices = check_argsort(x, dim, True, index_dtype=index_dtype)
                check_argsort(x, dim, stable=False, index_dtype=index_dtype)
                check_argsort(x.t(), dim, stable=True)
        assert gs.argsort(x.t(), 0).stride() == strides_of_torch_sort(x.t(), 0)[1]
        assert indices.stride() == strides_of_torch_sort(x, 1)[1]
    assert gs.argsort(make("uniform", (), dtype, device)).tolist() == 0


def test_argsort_takes_arguments_as_torch_does(device):
    x = make("two_values", (30, 20), torch.float32, device)
    want = torch.argsort(x.cpu(), dim=0, descending=True, stable=True)
    for got in (
        gs.argsort(x, dim=0, descending=True),
        gs.argsort(x, 0, True),
        gs.argsort(x, dim=0, descending=True, stable=True),
        gs.argsort(input=x, dim=0, descending=True, stable=False),
        torch.ops.gpusort.argsort(x, 0, True),
    ):
        assert torch.equal(got.cpu(), want)


@every_dtype
@pytest.mark.parametrize("shape", [(), (0,), (1,), (20,), (1, 20), (30, 30), (10, 20, 30), (0, 4), (4, 0), (3000, 2)], ids=str)
def test_msort(device, dtype, shape):
    x = make("zipf", shape, dtype, device)
    check_msort(x)
    if x.dim() > 1:
        check_msort(x.transpose(0, -1))
        check_msort(x[:, :1].expand(x.shape))
        if x.numel():
            assert gs.msort(x.transpose(0, -1)).stride() == strides_of_torch_sort(x.transpose(0, -1), 0)[0]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32, torch.int64], ids=name_of)
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64], ids=name_of)
def test_argsort_of_millions(dtype, index_dtype):
    for n in (2**20 + 1, 9_000_011):
        x = make("zipf", n, dtype, "cuda")
        for descending in BOTH:
            indices = gs.argsort(x, descending=descending, index_dtype=index_dtype)
            assert indices.dtype is index_dtype
            assert_is_stable_sort(x, None, indices, descending=descending)


def test_signatures_are_the_documented_ones():
    def names(function):
        return [
            (p.name, p.default if p.default is not p.empty else ..., p.kind is p.KEYWORD_ONLY)
            for p in inspect.signature(function).parameters.values()
        ]

    assert names(gs.sort) == [
        ("input", ..., False),
        ("dim", -1, False),
        ("descending", False, False),
        ("stable", True, False),
        ("index_dtype", None, True),
        ("algorithm", "auto", True),
        ("out", None, True),
    ]
    assert names(gs.argsort) == [
        ("input", ..., False),
        ("dim", -1, False),
        ("descending", False, False),
        ("stable", True, False),
        ("index_dtype", None, True),
    ]
    assert names(gs.msort) == [("input", ..., False)]
    assert names(gs.sort_keys) == [("input", ..., False), ("dim", -1, False), ("descending", False, False)]
    assert names(gs.radix_sort) == [
        ("input", ..., False),
        ("dim", -1, False),
        ("descending", False, False),
        ("begin_bit", 0, True),
        ("end_bit", None, True),
        ("kernel", "auto", True),
        ("digit_bits", None, True),
        ("max_value", None, True),
    ]
    assert names(gs.merge) == [
        ("a", ..., False),
        ("b", ..., False),
        ("descending", False, True),
        ("return_indices", False, True),
        ("check", False, True),
        ("kernel", "auto", True),
    ]
    assert names(gs.merge_by_key) == [
        ("a_keys", ..., False),
        ("a_values", ..., False),
        ("b_keys", ..., False),
        ("b_values", ..., False),
        ("descending", False, True),
    ]
    assert names(gs.co_rank) == [("k", ..., False), ("a", ..., False), ("b", ..., False), ("descending", False, True)]
