"""Refusals of arguments by their type: dtypes without an order, what is no tensor, no dense tensor, no bool, no int, no pair. Each error
has its type, and its text names the argument, what it was and what is allowed.
"""

# ruff: noqa: B023 (the functions made in loops are called there and then)

import numpy as np
import pytest
import torch
from refusals import ONE_TENSOR, nothing_is_left_behind, refused  # noqa: F401 (a fixture for all tests here)

import torch_gpusort as gs

UNSUPPORTED = (torch.complex32, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
# Dtypes of one byte of which torch makes tensors and hardly more. The stable ABI does not know most of them.
ODD = (torch.float8_e8m0fnu, torch.float4_e2m1fn_x2, torch.bits8, torch.bits1x8, torch.uint1, torch.uint4, torch.int4)


@pytest.mark.parametrize("name", [*ONE_TENSOR, "msort"])
@pytest.mark.parametrize("dtype", UNSUPPORTED, ids=str)
def test_unsupported_dtype(device, name, dtype):
    for n in (0, 1, 8, 5000):
        x = torch.zeros(n, dtype=torch.uint8 if dtype.itemsize == 1 else torch.int32, device=device).view(dtype)
        refused(TypeError, lambda: getattr(gs, name)(x), "input", str(dtype).removeprefix("torch."), "float32")


@pytest.mark.parametrize("dtype", (*UNSUPPORTED[1:], *ODD), ids=str)
def test_every_dtype_has_its_name_of_python_in_errors(device, dtype):
    x, ids = torch.zeros(4, dtype=torch.uint8, device=device).view(dtype), torch.arange(4, device=device)
    for argument, call in (
        *(("input", lambda name=name: ONE_TENSOR[name](x)) for name in ONE_TENSOR),
        *(("input", lambda name=name: getattr(gs, name)(x)) for name in ("msort", "merge_sort", "bitonic_sort", "sample_sort", "explain")),
        ("input", lambda: gs.sort_rows(x.view(2, 2))),
        ("input", lambda: gs.sort_by_key(x, ids)),
        ("a", lambda: gs.merge(x, x)),
        ("a", lambda: gs.merge(x, x, return_indices=True)),
        ("a_keys", lambda: gs.merge_by_key(x, ids, x, ids)),
        ("a", lambda: gs.co_rank(ids, x, x)),
        ("runs", lambda: gs.merge_many(x, torch.tensor([0, 4], device=device))),
        ("keys[1]", lambda: gs.lexsort([ids, x])),
    ):
        refused(TypeError, call, f"{argument} has dtype {dtype}, which has no order here; allowed are bool, ", "complex64")
    refused(TypeError, lambda: gs.co_rank(x, ids, ids), f"k has dtype {dtype}; it must be torch.int64")
    refused(TypeError, lambda: gs.merge_by_key(ids, x, ids, ids), f"a_values has dtype {dtype} and b_values has dtype torch.int64")
    for name in ("sort", "argsort", "explain"):
        refused(ValueError, lambda: getattr(gs, name)(ids, index_dtype=dtype), f"index_dtype is {dtype}; allowed are torch.int64 and")


@pytest.mark.parametrize("dtype", ODD, ids=str)
def test_values_of_any_dtype_follow_their_keys(device, dtype):
    """No order is needed of them, nor anything but their size."""
    keys = torch.tensor([2, 0, 1, 3], device=device)
    values = torch.tensor([32, 10, 21, 43], dtype=torch.uint8, device=device).view(dtype)
    moved = gs.sort_by_key(keys, values)[1]
    assert moved.dtype is dtype and moved.view(torch.uint8).tolist() == [10, 21, 32, 43]
    order = torch.arange(4, device=device)
    merged = gs.merge_by_key(order, values, order, values)[1]
    assert merged.dtype is dtype and merged.view(torch.uint8).tolist() == [32, 32, 10, 10, 21, 21, 43, 43]


@pytest.mark.parametrize("value", [None, [3, 1, 2], 4.5, "text"], ids=repr)
def test_arguments_that_are_no_tensor(device, value):
    x, k = torch.zeros(3, device=device), torch.arange(3, device=device)
    for name in (*ONE_TENSOR, "msort", "merge_sort", "bitonic_sort", "sample_sort"):
        refused(TypeError, lambda: getattr(gs, name)(value), "input must be a Tensor, not", type(value).__name__)
    refused(TypeError, lambda: gs.sort(value, out=(x, k)), "input must be a Tensor, not", type(value).__name__)
    refused(TypeError, lambda: gs.radix_sort(value, max_value=3), "input must be a Tensor, not", type(value).__name__)
    for name, call in (
        ("a", lambda: gs.merge(value, x)),
        ("b", lambda: gs.merge(x, value, check=True)),
        ("b", lambda: gs.merge(x, value, return_indices=True)),
        ("a_keys", lambda: gs.merge_by_key(value, x, x, x)),
        ("b_values", lambda: gs.merge_by_key(x, x, x, value)),
        ("k", lambda: gs.co_rank(value, x, x)),
        ("a", lambda: gs.co_rank(k, value, x)),
        ("keys", lambda: gs.sort_by_key(value, x)),
        ("values[1]", lambda: gs.sort_by_key(x, x, value)),
        ("runs[1]", lambda: gs.merge_many([x, value])),
        *((("offsets", lambda: gs.merge_many(x, value)),) if value is not None else ()),
    ):
        refused(TypeError, call, f"{name} must be a Tensor, not", type(value).__name__)


def test_options_of_a_wrong_type(device):
    x, ids = torch.zeros(3, device=device), torch.arange(3, device=device)
    for dim in ("0", 0.5, None, [0], 2**70, ids):
        refused(TypeError, lambda: gs.sort(x, dim=dim), "dim must be an int", type(dim).__name__, "" if dim is ids else dim)
    for name, allowed, call in (
        ("descending", "bool", lambda: gs.sort(x, descending="no")),
        ("descending", "bool", lambda: gs.merge(x, x, descending="no")),
        ("descending", "bool", lambda: gs.merge_many([x, x], descending="no")),
        ("descending", "bool", lambda: gs.co_rank(ids, x, x, descending="no")),
        ("algorithm", "'radix'", lambda: gs.sort(x, algorithm=3)),
        ("kernel", "'onesweep'", lambda: gs.radix_sort(x, kernel=3)),
        ("kernel", "'circular'", lambda: gs.merge(x, x, kernel=3)),
        ("check", "bool", lambda: gs.merge(x, x, check="no")),
        ("index_dtype", "torch.int32", lambda: gs.sort(x, index_dtype="int32")),
        ("index_dtype", "torch.int32", lambda: gs.sort(x, index_dtype="int64", out=(x, ids))),
        ("begin_bit", "int", lambda: gs.radix_sort(x, begin_bit="3")),
        ("end_bit", "int or None", lambda: gs.radix_sort(x, end_bit=2.5)),
        ("digit_bits", "int or None", lambda: gs.radix_sort(x, digit_bits="8")),
        ("max_value", "int or None", lambda: gs.radix_sort(ids, max_value=2.5)),
    ):
        refused(TypeError, call, f"{name} must be", allowed, "not")


def test_what_has_a_truth_value_is_no_bool(device):
    x, k = torch.arange(3.0, device=device), torch.arange(3, device=device)
    matrix, offsets = x[:, None], torch.tensor([0, 3], device=device)
    for value in (None, 2, -1, 0.5, "no", [], 1j, torch.tensor(True), torch.tensor([True, False])):
        calls = [lambda name=name: getattr(gs, name)(x, descending=value) for name in ONE_TENSOR]
        calls += [lambda name=name: getattr(gs, name)(x, descending=value) for name in ("merge_sort", "bitonic_sort", "sample_sort")]
        calls += [
            lambda: gs.sort_by_key(x, x, descending=value),
            lambda: gs.sort_rows(matrix, value),
            lambda: gs.explain(x, descending=value),
        ]
        calls += [lambda: gs.merge(x, x, descending=value), lambda: gs.merge_by_key(x, x, x, x, descending=value)]
        calls += [lambda: gs.merge_many([x], descending=value), lambda: gs.co_rank(k, x, x, descending=value)]
        for call in calls:
            refused(TypeError, call, "descending must be a bool, not", type(value).__name__)
        refused(TypeError, lambda: gs.lexsort([x, x], descending=[True, value]), "descending[1] must be a bool, not", type(value).__name__)
        refused(TypeError, lambda: gs.merge(x, x, check=value), "check must be a bool, not", type(value).__name__)
        refused(TypeError, lambda: gs.merge(x, x, return_indices=value), "return_indices must be a bool, not", type(value).__name__)
        refused(TypeError, lambda: gs.merge_many(x, offsets, return_indices=value), "return_indices must be a bool", type(value).__name__)
    for value in (None, 2, -1, 0.5, "no", torch.tensor(True)):
        refused(TypeError, lambda: gs.lexsort([x, x], descending=value), "descending must be a bool, not", type(value).__name__)
    for value in (1, np.bool_(True), np.True_):
        assert gs.argsort(x, descending=value).tolist() == gs.lexsort([x, x], descending=value).tolist() == [2, 1, 0]


def test_wrong_bounds(device):
    ids = torch.arange(3, device=device)
    refused(ValueError, lambda: gs.radix_sort(ids, max_value=-1), "max_value", -1, 0)
    refused(TypeError, lambda: gs.radix_sort(ids.float(), max_value=3), "max_value", 3, "float32")


def test_stable_is_a_bool_or_none(device):
    x = torch.tensor([3.0, 1.0, 2.0], device=device)
    for value in (True, False, None, np.bool_(True)):
        assert gs.argsort(x, stable=value).tolist() == gs.sort(x, stable=value).indices.tolist() == [1, 2, 0]
    for value in ("foo", "", 3, -1, 0.5, [], torch.tensor(True)):
        out = torch.empty(0, device=device), torch.empty(0, dtype=torch.int64, device=device)
        for call in (lambda: gs.sort(x, stable=value), lambda: gs.argsort(x, stable=value), lambda: gs.sort(x, stable=value, out=out)):
            refused(TypeError, call, "stable must be a bool or None, not", type(value).__name__)
        with pytest.raises(TypeError):
            torch.sort(x, stable=value)


def test_a_bool_is_no_dim(device):
    x = torch.zeros(2, 3, device=device)
    calls = [getattr(gs, name) for name in (*ONE_TENSOR, "merge_sort", "bitonic_sort", "sample_sort", "explain", "sort_by_key")]
    for value in (True, False, np.bool_(False)):
        for call in (*calls, lambda x, dim: gs.lexsort([x], dim)):
            refused(TypeError, lambda: call(x, dim=value), "dim must be an int", value)
        with pytest.raises(TypeError):
            torch.sort(x, dim=value)
    for value in (np.int64(0), np.int8(-2), torch.tensor(0)):
        assert torch.equal(gs.argsort(x, value), gs.argsort(x, 0))


def test_directions_without_an_order(device):
    x = torch.zeros(3, device=device)
    for value in ({True, False}, frozenset((True,)), {True: 0, False: 1}, {True: 0, False: 1}.keys()):
        refused(TypeError, lambda: gs.lexsort([x, x], descending=value), "descending must be a bool or a sequence", type(value).__name__)
    for value in ((True, False), np.array([True, False]), iter([True, False])):
        assert gs.lexsort([x, x], descending=value).tolist() == [0, 1, 2]


def test_max_value_is_any_kind_of_int(device):
    ids = torch.tensor([3, 1, 2], device=device)
    for bound in (3, np.int64(3), np.uint8(3), torch.tensor(3)):
        assert gs.radix_sort(ids, max_value=bound).values.tolist() == [1, 2, 3]
    for bound in (True, np.bool_(True), 3.0, np.float32(3), "3", [3]):
        refused(TypeError, lambda: gs.radix_sort(ids, max_value=bound), "max_value must be an int or None, not", type(bound).__name__)
    refused(ValueError, lambda: gs.radix_sort(ids, max_value=np.int64(-1)), "max_value is -1; allowed are 0 and more")


def test_what_is_no_pair_of_targets(device):
    x, k = torch.zeros(3, device=device), torch.zeros(3, dtype=torch.int64, device=device)
    for out, given in (
        (x, "Tensor"),
        ("ab", "str 'ab'"),
        (3, "int 3"),
        ((x,), "tuple of Tensor"),
        ((), "tuple of nothing"),
        ([x, None], "list of Tensor, NoneType"),
        ((x, k, k), "tuple of Tensor, Tensor, Tensor"),
    ):
        refused(TypeError, lambda: gs.sort(x, out=out), f"out must be a pair of tensors (values, indices), not {given}")


def test_radix_sort_of_complex_numbers(device):
    for dtype in (torch.complex64, torch.complex128):
        x = torch.zeros(3, dtype=dtype, device=device)
        refused(TypeError, lambda: gs.radix_sort(x), f"input has dtype {dtype}", "allowed are bool", "float8_e5m2")


def test_offsets_of_a_wrong_dtype(device):
    x = torch.zeros(3, device=device)
    refused(TypeError, lambda: gs.merge_many(x, torch.tensor([0.0, 3.0], device=device)), "offsets", "float32", "int64", "int32")


# Every argument that takes a tensor, as messages name it: called with t there and with dense tensors of three elements elsewhere.
TENSOR_ARGUMENTS = {
    "sort input": lambda t, x, k: gs.sort(t),
    "sort input, by name": lambda t, x, k: gs.sort(t, algorithm="radix"),
    "sort input, to targets": lambda t, x, k: gs.sort(t, out=(x, k)),
    "sort out tensor values": lambda t, x, k: gs.sort(x, out=(t, k)),
    "sort out tensor indices": lambda t, x, k: gs.sort(x, out=(x, t)),
    "argsort input": lambda t, x, k: gs.argsort(t),
    "msort input": lambda t, x, k: gs.msort(t),
    "sort_keys input": lambda t, x, k: gs.sort_keys(t),
    "radix_sort input": lambda t, x, k: gs.radix_sort(t),
    "merge_sort input": lambda t, x, k: gs.merge_sort(t),
    "bitonic_sort input": lambda t, x, k: gs.bitonic_sort(t),
    "sample_sort input": lambda t, x, k: gs.sample_sort(t),
    "sort_rows input": lambda t, x, k: gs.sort_rows(t),
    "explain input": lambda t, x, k: gs.explain(t),
    "lexsort keys": lambda t, x, k: gs.lexsort(t),
    "lexsort keys[1]": lambda t, x, k: gs.lexsort([x, t]),
    "sort_by_key keys": lambda t, x, k: gs.sort_by_key(t, x),
    "sort_by_key values[1]": lambda t, x, k: gs.sort_by_key(x, x, t),
    "merge a": lambda t, x, k: gs.merge(t, x),
    "merge b": lambda t, x, k: gs.merge(x, t),
    "merge b, with indices": lambda t, x, k: gs.merge(x, t, return_indices=True),
    "merge_by_key a_keys": lambda t, x, k: gs.merge_by_key(t, x, x, x),
    "merge_by_key a_values": lambda t, x, k: gs.merge_by_key(x, t, x, x),
    "merge_by_key b_keys": lambda t, x, k: gs.merge_by_key(x, x, t, x),
    "merge_by_key b_values": lambda t, x, k: gs.merge_by_key(x, x, x, t),
    "merge_many runs": lambda t, x, k: gs.merge_many(t, k),
    "merge_many offsets": lambda t, x, k: gs.merge_many(x, t),
    "merge_many runs[1]": lambda t, x, k: gs.merge_many([x, t]),
    "co_rank k": lambda t, x, k: gs.co_rank(t, x, x),
    "co_rank a": lambda t, x, k: gs.co_rank(k, t, x),
    "co_rank b": lambda t, x, k: gs.co_rank(k, x, t),
}


def test_every_function_is_among_them():
    functions = {name for name in gs.__all__ if callable(getattr(gs, name)) and not isinstance(getattr(gs, name), type)}
    assert functions == {name.split()[0] for name in TENSOR_ARGUMENTS}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:Sparse CSR tensor", "ignore:.*quantize")
@pytest.mark.parametrize("argument", TENSOR_ARGUMENTS)
def test_tensors_that_are_not_dense(device, argument):
    x = torch.eye(3, device=device)
    dense, k = torch.arange(3.0, device=device), torch.tensor([0, 3, 3], device=device)
    parts = [x[0], x[1, :2]]
    nested = torch.nested.nested_tensor(parts)
    odd = [
        (nested, "is a nested tensor"),
        (nested.detach().requires_grad_(), "is a nested tensor"),
        (torch.nested.nested_tensor(parts, layout=torch.jagged), "is a nested tensor"),
        (x.to_sparse(), "has layout torch.sparse_coo"),
        (x.to_sparse_csr(), "has layout torch.sparse_csr"),
    ]
    if device.type == "cpu":
        odd += [(dense.to_mkldnn(), "has layout torch._mkldnn"), (torch.quantize_per_tensor(dense, 0.5, 0, torch.qint8), "is quantized")]
    name = argument.split(" ", 1)[1].split(",")[0]
    for tensor, what in odd:
        with pytest.raises(NotImplementedError) as caught:
            TENSOR_ARGUMENTS[argument](tensor, dense, k)
        assert str(caught.value).startswith(f"{name} {what}") and "dense tensors" in str(caught.value), caught.value
