"""Shapes, strides and dtypes of the results, without data: for meta tensors, torch.compile, torch.export and shape checks under vmap.

Sorts keep the strides that torch.empty_like gives (as torch.sort does); merges and co_rank are contiguous. Sizes may be symbolic.
These run on fake tensors only, so they raise Python's own exceptions where the kernels have to encode them.
"""

from __future__ import annotations

import torch
from torch import Tensor

REAL_DTYPES = (
    torch.bool,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
)
DTYPES = (*REAL_DTYPES, torch.complex64, torch.complex128)
ALGORITHMS = ("auto", "radix", "merge", "bitonic", "sample", "rows", "grid", "buckets")
RADIX_KERNELS = {"auto": (1, 2, 4, 8), "onesweep": (8,), "scan_scatter": (1,), "block": (1, 2, 4, 8)}  # with their digit_bits
MERGE_KERNELS = ("auto", "sequential", "basic", "tiled", "circular")


def wrap_dim(dim: int, ndim: int) -> int:
    limit = max(ndim, 1)
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got dim={dim})")
    return dim % limit


def check_dtype(argument: str, tensor: Tensor, allowed: tuple[torch.dtype, ...] = DTYPES) -> None:
    if tensor.dtype not in allowed:
        names = ", ".join(str(dtype).removeprefix("torch.") for dtype in allowed)
        raise TypeError(f"{argument} has dtype {tensor.dtype}, which has no order here; allowed are {names}")


def check_index_dtype(index_dtype: torch.dtype | None, length: int) -> torch.dtype:
    if index_dtype is None or index_dtype == torch.int64:
        return torch.int64
    if index_dtype != torch.int32:
        raise ValueError(f"index_dtype is {index_dtype}; allowed are torch.int64 and torch.int32")
    if isinstance(length, int) and length > 2**31:  # a symbolic length is checked by the kernel
        raise ValueError(
            f"index_dtype is torch.int32, but the dimension has {length} elements and its last index would not fit; use torch.int64"
        )
    return torch.int32


def empty_like(tensor: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """torch.empty_like with the strides it gives real tensors. For fake ones it restrides what has a dimension of size 0 or 1."""
    if any(isinstance(size, int) and size < 2 for size in tensor.shape):
        expected = 1
        wide = [(stride, size) for stride, size in zip(tensor.stride(), tensor.shape) if not isinstance(size, int) or size >= 2]
        for stride, size in sorted(wide, key=lambda pair: pair[0]):
            if stride != expected and 0 not in tensor.shape:
                break
            expected *= size
        else:
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype or tensor.dtype, device=tensor.device)
    return torch.empty_like(tensor, dtype=dtype)


def check_option(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; allowed are {', '.join(map(repr, allowed))}")


def _sort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = True, *, index_dtype=None, algorithm: str = "auto"):
    check_dtype("input", self)
    dim = wrap_dim(dim, self.dim())
    check_option("algorithm", algorithm, ALGORITHMS)
    length = self.shape[dim] if self.dim() else 1
    return empty_like(self), empty_like(self, dtype=check_index_dtype(index_dtype, length))


def _argsort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = True, *, index_dtype=None):
    return _sort(self, dim, descending, stable, index_dtype=index_dtype)[1]


def _msort(self: Tensor):
    return _sort(self, 0)[0]


def _sort_keys(self: Tensor, dim: int = -1, descending: bool = False):
    return _sort(self, dim, descending)[0]


def _radix_sort(
    self: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    begin_bit: int = 0,
    end_bit: int | None = None,
    algorithm: str = "auto",
    digit_bits: int | None = None,
):
    check_dtype("input", self, REAL_DTYPES)
    bits = self.element_size() * 8
    last = bits if end_bit is None else end_bit
    if not 0 <= begin_bit <= last <= bits:
        limits = f"allowed is 0 <= begin_bit <= end_bit <= {bits} for {self.dtype}"
        raise ValueError(f"begin_bit is {begin_bit} and end_bit is {last}; {limits}")
    check_option("kernel", algorithm, tuple(RADIX_KERNELS))
    if digit_bits not in (None, *RADIX_KERNELS[algorithm]):
        raise ValueError(f"digit_bits is {digit_bits}; kernel {algorithm!r} takes None, {', '.join(map(str, RADIX_KERNELS[algorithm]))}")
    return _sort(self, dim, descending)


def _sort_by_name(self: Tensor, dim: int = -1, descending: bool = False):
    return _sort(self, dim, descending)


def _merged_shape(a: Tensor, b: Tensor, a_name: str, b_name: str) -> list[int]:
    check_dtype(a_name, a)
    check_same(a, b, a_name, b_name)
    if a.dim() == 0 or a.dim() != b.dim():
        raise ValueError(f"{a_name} has {a.dim()} dimensions and {b_name} has {b.dim()}; both need the same number, at least 1")
    for axis, (left, right) in enumerate(zip(a.shape[:-1], b.shape[:-1])):
        torch._check_value(
            left == right,
            lambda axis=axis, left=left, right=right: (
                f"{a_name} has size {left} and {b_name} has size {right} in dimension {axis}; all but the last dimension have to be equal"
            ),
        )
    return [*a.shape[:-1], a.shape[-1] + b.shape[-1]]


def check_same(a: Tensor, b: Tensor, a_name: str, b_name: str) -> None:
    if a.device != b.device:
        raise RuntimeError(f"{a_name} is on {a.device} and {b_name} on {b.device}; both have to be on one device")
    if a.dtype != b.dtype:
        raise TypeError(f"{a_name} has dtype {a.dtype} and {b_name} {b.dtype}; both have to be of one dtype")


def _merge(a: Tensor, b: Tensor, descending: bool = False, algorithm: str = "auto", check: bool = False):
    return _merge_with_indices(a, b, descending, algorithm)[0]


def _merge_with_indices(a: Tensor, b: Tensor, descending: bool = False, algorithm: str = "auto", check: bool = False):
    shape = _merged_shape(a, b, "a", "b")
    check_option("kernel", algorithm, MERGE_KERNELS)
    return a.new_empty(shape), a.new_empty(shape, dtype=torch.int64)


def _merge_by_key(a_keys: Tensor, a_values: Tensor, b_keys: Tensor, b_values: Tensor, descending: bool = False):
    shape = _merged_shape(a_keys, b_keys, "a_keys", "b_keys")
    check_same(a_values, b_values, "a_values", "b_values")
    for keys, values, side in ((a_keys, a_values, "a"), (b_keys, b_values, "b")):
        if keys.device != values.device:
            raise RuntimeError(f"{side}_keys is on {keys.device} and {side}_values on {values.device}; both have to be on one device")
        if keys.dim() != values.dim():
            raise ValueError(f"{side}_keys has {keys.dim()} dimensions and {side}_values has {values.dim()}; their shapes have to be equal")
        for left, right in zip(keys.shape, values.shape):
            torch._check_value(left == right, lambda side=side: f"{side}_keys and {side}_values have to be of one shape")
    return a_keys.new_empty(shape), a_values.new_empty(shape)


def _merge_many(runs: Tensor, offsets: Tensor, *, descending: bool = False):
    return _merge_many_with_indices(runs, offsets, descending=descending)[0]


def _merge_many_with_indices(runs: Tensor, offsets: Tensor, *, descending: bool = False):
    check_dtype("runs", runs)
    if runs.dim() != 1:
        raise ValueError(f"runs has shape {list(runs.shape)}; it must have one dim")
    if offsets.dtype != torch.int64:
        raise TypeError(f"offsets has dtype {offsets.dtype}; it must be torch.int64")
    if offsets.dim() != 1:
        raise ValueError(f"offsets has shape {list(offsets.shape)}; it must have one dim, and one element more than there are runs")
    if offsets.device != runs.device:
        raise RuntimeError(f"offsets is on {offsets.device} and runs on {runs.device}; both have to be on one device")
    return runs.new_empty(runs.shape), runs.new_empty(runs.shape, dtype=torch.int64)


def _co_rank(k: Tensor, a: Tensor, b: Tensor, *, descending: bool = False):
    if k.dtype != torch.int64:
        raise TypeError(f"k has dtype {k.dtype}; it has to be torch.int64")
    if a.dim() != 1 or b.dim() != 1:
        raise ValueError(f"a has {a.dim()} dimensions and b has {b.dim()}; both have to have 1")
    check_dtype("a", a)
    check_same(a, b, "a", "b")
    if k.device != a.device:
        raise RuntimeError(f"k is on {k.device} and a on {a.device}; both have to be on one device")
    return k.new_empty(k.shape)


def _take(self: Tensor, indices: Tensor, dim: int):
    wrap_dim(dim, self.dim())
    if indices.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"indices has dtype {indices.dtype}; allowed are torch.int64 and torch.int32")
    if indices.device != self.device:
        raise RuntimeError(f"indices is on {indices.device} and input on {self.device}; all must be on one device")
    if indices.dim() != self.dim():
        raise ValueError(f"indices has {indices.dim()} dimensions and input has {self.dim()}; their shapes have to be equal")
    for left, right in zip(indices.shape, self.shape):
        torch._check_value(left == right, lambda: "indices and input have to be of one shape")
    return self.new_empty(self.shape)


def register() -> None:
    kernels = {
        "sort": _sort,
        "argsort": _argsort,
        "msort": _msort,
        "sort_keys": _sort_keys,
        "radix_sort": _radix_sort,
        "merge_sort": _sort_by_name,
        "bitonic_sort": _sort_by_name,
        "sample_sort": _sort_by_name,
        "merge": _merge,
        "merge_with_indices": _merge_with_indices,
        "merge_by_key": _merge_by_key,
        "merge_many": _merge_many,
        "merge_many_with_indices": _merge_many_with_indices,
        "co_rank": _co_rank,
        "_sort": _sort,
        "_sort_keys": _sort_keys,
        "_merge": _merge,
        "_merge_with_indices": _merge_with_indices,
        "_merge_by_key": _merge_by_key,
        "_take": _take,
    }
    for name, kernel in kernels.items():
        torch.library.register_fake(f"gpusort::{name}", kernel)
