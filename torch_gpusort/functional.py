"""The public functions: torch's names, argument order and return types around the operators torch.ops.gpusort.*.

Common to all of them:

Order: ascending is numeric order with -0.0 equal to +0.0 and every NaN (of either sign, whatever its payload) equal to each other and
after +inf. Complex numbers are ordered by real, then imaginary part, and those with a NaN come after all others, as NumPy has it: numbers
whose imaginary part is NaN by their real part, then those whose real part is NaN by their imaginary part, then those with two NaNs.
Descending is the mirror image, so NaN comes first. Results are always stable, also when descending: equal elements keep their input order,
and values keep their own bits. So a result is the same on every run and device.

Dtypes: bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2,
complex64, complex128.

Errors: IndexError for a dim out of range, TypeError for a dtype without an order or an argument of the wrong type, ValueError for an option
that is not allowed, RuntimeError for tensors on different devices, NotImplementedError for tensors that are not dense,
torch.OutOfMemoryError when memory runs out.

Gradients flow through values, in reverse and forward mode and to any order; indices carry none. All functions work under torch.compile,
torch.export and torch.vmap; TorchScript calls the operators themselves, as torch.ops.gpusort.sort(x, 0, True).
"""

from __future__ import annotations

import operator
import warnings

import torch
from torch import Tensor

from ._calls import call, call_short, short_form
from ._errors import check_dense, check_out, check_sort, check_tensor, dim_of_name
from ._merges import MergeResult, co_rank, merge, merge_by_key, merge_many

__all__ = [
    "MergeResult",
    "argsort",
    "bitonic_sort",
    "co_rank",
    "merge",
    "merge_by_key",
    "merge_many",
    "merge_sort",
    "msort",
    "radix_sort",
    "sample_sort",
    "sort",
    "sort_by_key",
    "sort_keys",
]

_ops = torch.ops.gpusort
_SortResult = torch.return_types.sort

_sort = _ops.sort.default
_sort_keys = _ops.sort_keys.default
_argsort = _ops.argsort.default

# For calls that nothing watches.
_sort_unwatched = short_form(_ops._sort.default)
_sort_keys_unwatched = short_form(_ops._sort_keys.default)
_argsort_unwatched = short_form(_ops.argsort.default)  # indices have no gradient, so autograd has no kernel for it anyway


def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    stable: bool | None = True,
    *,
    index_dtype: torch.dtype | None = None,
    algorithm: str = "auto",
    out: tuple[Tensor, Tensor] | None = None,
) -> torch.return_types.sort:
    """Sorts a tensor along one dimension: a drop-in for torch.sort.

    Args:
        input: tensor of any shape (0-dim and empty too), any strides and any dtype listed at the top of this module.
        dim: the dimension to sort along.
        descending: largest first, NaN before everything. Equal elements keep their input order all the same.
        stable: accepted for torch's sake; every sort is stable.
        index_dtype: torch.int64 (the default) or torch.int32, which halves the memory of the indices, not what the sort works in. The sorts
            by buckets work in int64 indices, so with int32 the radix sort takes their place from some 2**21 keys of 32 bits to 2**27.
            ValueError where the dimension is too long for it.
        algorithm: "auto" chooses by shape and dtype; "radix", "merge", "bitonic" and "sample" force one (see :func:`radix_sort`,
            :func:`merge_sort`, :func:`bitonic_sort`, :func:`sample_sort`). "rows", "grid" and "buckets" force one of the GPU's sorts of
            what fits on chip, where it takes the shape (:func:`explain` tells), else the radix sort. The result is the same.
        out: (values, indices) to write to: a target of another shape is resized, strided targets and targets that are the input itself
            are fine, another dtype or device is a RuntimeError.

    Returns:
        The named tuple (values, indices) that torch.sort returns: new tensors of the shape of input, with torch.sort's strides.

    Cost: radix sort, O(n * bytes of the key): one read for the histograms, then one read and one write per digit of 8 bits. Rows that fit
    a thread block are read and written once. Longer ones of 32 and 64 bits are cut into buckets that do: up to 2**22 keys in a row (2**21
    of 64 bits; 2**20 where values or int64 indices are not wanted, up to about twice that in one row). Longer rows of 32 bits are cut
    twice, for values and int64 indices: 1 to 4 rows, and 5 to 8 rows of up to 2**24 keys, of 2**23 to 2**27 keys in all, and 8 to 16 rows
    of 2**22; with compute capability 9.0 or newer, and unless samples show values that are found often. Integers, which often do: rows of
    up to 2**25, 2**26 in all.

    Memory on a GPU beyond the results, for a 1-D input and int64 indices: none below 6144 elements; up to 2**18 elements 8.1 bytes an
    element for keys to 32 bits and 16.2 for keys of 64; above, 8.0 bytes for keys of 32 bits (6.2 for 16, 1.1 for 8) and 12.1 for keys of
    64; above some 2**32 elements 13.0 (11.0 for 16, 0.5 for 8) and 17.0. With int32 indices, above 2**18 elements 8.3 bytes for keys of 32
    bits and 12.4 for keys of 64. Complex: at most 36.4 bytes an element, 60.4 for complex128, and above some 2**32 elements 41.0 and 65.0.
    :func:`explain` tells it for every shape.

    Source: least-significant-digit radix sort with a single pass per digit ("Onesweep", Adinets and Merrill, 2022, arXiv:2206.01784) by
    chained scan with decoupled look-back (Merrill and Garland, 2016).

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.sort(torch.tensor([3.0, float("nan"), -1.0])).values
        tensor([-1.,  3., nan])
        >>> values, indices = torch_gpusort.sort(torch.tensor([[2, 9, 2], [7, 1, 7]]), descending=True)
        >>> indices
        tensor([[1, 0, 2],
                [0, 2, 1]])
    """
    check_sort(dim, descending, stable)
    if out is not None:
        return _sort_out(input, dim, descending, index_dtype, algorithm, out)
    if index_dtype is None and algorithm == "auto":
        return _SortResult(call_short(_sort, _sort_unwatched, input, dim, descending))
    return _SortResult(call(_sort, input, dim, descending, index_dtype=index_dtype, algorithm=algorithm))


def _sort_out(input, dim, descending, index_dtype, algorithm, out) -> torch.return_types.sort_out:
    check_tensor("input", input)
    check_dense("input", input)
    check_out(out)
    if index_dtype is not None and not isinstance(index_dtype, torch.dtype):
        raise TypeError(f"index_dtype must be torch.int64, torch.int32 or None, not {type(index_dtype).__name__} {index_dtype!r}")
    for name, target, dtype in (("values", out[0], input.dtype), ("indices", out[1], index_dtype or torch.int64)):
        check_dense(f"out tensor {name}", target)
        if target.dtype != dtype:
            raise RuntimeError(f"Expected out tensor {name} to have dtype {dtype}, but got {target.dtype} instead")
        if target.device != input.device:
            raise RuntimeError(
                f"Expected out tensor {name} to be on device {input.device}, where input is, but it is on device {target.device}"
            )
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (input, *out)):
        raise RuntimeError(
            "sort(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
        )
    results = sort(input, dim, descending, index_dtype=index_dtype, algorithm=algorithm)
    for name, target, result in zip(("values", "indices"), out, results):
        if target.shape != result.shape:
            if target.numel() != 0:
                warnings.warn(
                    f"out tensor {name} of shape {tuple(target.shape)} was resized to {tuple(result.shape)}; give an empty tensor to have "
                    "it sized without this warning",
                    stacklevel=3,
                )
            target.resize_(result.shape).as_strided_(result.shape, result.stride())  # as torch.sort lays it out
        if target.dtype == torch.bool:  # copy_ of a bool would make every True a one
            target, result = target.view(torch.uint8), result.view(torch.uint8)
        target.copy_(result)
    return torch.return_types.sort_out(out)


def argsort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = True, *, index_dtype: torch.dtype | None = None
) -> Tensor:
    """The indices that sort a tensor along one dimension, as torch.argsort. No values are made, but for those of 64-bit keys in long rows.

    Arguments, shapes, dtypes, order, errors and source are those of :func:`sort`. Returns the indices, of the shape of input. Memory beyond
    the result, as the sort has none of the keys to work in: as :func:`sort` up to 2**18 elements, and for complex numbers; above, 8.8 bytes
    an element for keys of 32 bits (6.2 for 16, 1.1 for 8) and 20.4 for keys of 64, with int32 indices 12.3 for keys of 32 bits; above some
    2**32 elements 17.0 (13.0 for 16, 0.5 for 8) and 25.0.

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.argsort(torch.tensor([0.5, -0.0, 0.0]))
        tensor([1, 2, 0])
    """
    check_sort(dim, descending, stable)
    if index_dtype is None:
        return call_short(_argsort, _argsort_unwatched, input, dim, descending)
    return call(_argsort, input, dim, descending, index_dtype=index_dtype)


def msort(input: Tensor) -> Tensor:
    """The values sorted along the first dimension, as torch.msort: sort_keys(input, dim=0). No index is made or moved.

    Shapes, dtypes, order, errors and source are those of :func:`sort`.

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.msort(torch.tensor([[3, 1], [2, 5]]))
        tensor([[2, 1],
                [3, 5]])
    """
    return call(_ops.msort.default, input)


def sort_keys(input: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """The sorted values alone. No index is made or moved, so the passes over the data are about half as expensive as in :func:`sort`.

    Shapes, dtypes, order, errors and source are those of :func:`sort`. While a gradient is wanted, indices are made after all. Memory
    beyond the result: as :func:`sort` up to 2**18 elements (9.1 bytes an element for keys of 8 bits), and for complex numbers; above, an
    array of the keys, 4.3 bytes an element for 32 bits and 8.4 for 64 (2.2 for 16, 0.1 for 8); above some 2**32 elements 5.0 and 9.0 (3.0
    and 0.5).

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.sort_keys(torch.tensor([3, 1, 2], dtype=torch.uint16), descending=True)
        tensor([3, 2, 1], dtype=torch.uint16)
    """
    check_sort(dim, descending)
    return call_short(_sort_keys, _sort_keys_unwatched, input, dim, descending)


def radix_sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    begin_bit: int = 0,
    end_bit: int | None = None,
    kernel: str = "auto",
    digit_bits: int | None = None,
    max_value: int | None = None,
) -> torch.return_types.sort:
    """Sorts stably by bits [begin_bit, end_bit) of the order-preserving unsigned key.

    The key of an unsigned integer is itself; of a signed one, itself with the sign bit flipped; of a floating-point number, the code whose
    unsigned order is the order of :func:`sort`. Elements that agree in the window keep their input order; an empty window changes nothing.
    end_bit orders by fewer bits even where the others differ; for integers below a bound it need not be given (see max_value).

    Args:
        input, dim, descending: as :func:`sort`, without the complex dtypes (TypeError).
        begin_bit, end_bit: 0 <= begin_bit <= end_bit <= bits of the dtype (ValueError otherwise); None is all bits.
        kernel: "onesweep" is the production sort; "scan_scatter" moves one bit a pass by mask, scan and scatter; "block" partitions tiles
            on chip before it writes them. "auto" is the first, unless digit_bits asks for digits that only "block" has. On the CPU one
            sort serves all names.
        digit_bits: bits per pass: 8 with "onesweep", 1 with "scan_scatter", 1, 2, 4 or 8 with "block" (None is 8).
        max_value: a bound that no element of an integer input exceeds (TypeError for other dtypes, ValueError if it is negative). The
            result does not depend on it, right or wrong, and neither does the time: the histogram, which is read in any case, shows which
            digits are the same in all elements, and their passes are skipped.

    Returns:
        The named tuple (values, indices), as :func:`sort`.

    Cost: one read for the histogram, and one pass over the data per digit of the window that is not the same in all elements. Memory beyond
    the results, up to some 2**32 elements: as much as the keys and indices of 32 bits, 8 bytes an element for keys of 32 bits and 12 for
    keys of 64, and tables of at most 13 KB; with the other kernels twice that, and at most 4.3 bytes more.

    Source: as :func:`sort`. "scan_scatter": the split of Blelloch, "Prefix sums and their applications", 1990. "block": Satish, Harris and
    Garland, "Designing efficient sorting algorithms for manycore GPUs", 2009.

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.radix_sort(torch.tensor([2, 0, -1, 1], dtype=torch.int32), end_bit=2).values
        tensor([ 0,  1,  2, -1], dtype=torch.int32)
    """
    check_sort(dim, descending)
    if max_value is not None:
        _check_max_value(input, max_value)
    if begin_bit == 0 and end_bit is None and kernel == "auto" and digit_bits is None:
        return _SortResult(call(_ops.radix_sort.default, input, dim, descending))
    options = {"begin_bit": begin_bit, "end_bit": end_bit, "algorithm": kernel, "digit_bits": digit_bits}
    return _SortResult(call(_ops.radix_sort.default, input, dim, descending, **options))


def _check_max_value(input: Tensor, max_value: int) -> None:
    check_tensor("input", input)
    try:
        bound = None if isinstance(max_value, bool) else operator.index(max_value)
    except TypeError:
        bound = None
    if bound is None:
        raise TypeError(f"max_value must be an int or None, not {type(max_value).__name__} {max_value!r}") from None
    if input.is_floating_point() or input.is_complex():
        raise TypeError(f"max_value is {max_value}, but input has dtype {input.dtype}; only integers and bool have such a bound")
    if bound < 0:
        raise ValueError(f"max_value is {max_value}; allowed are 0 and more, or None")


def merge_sort(input: Tensor, dim: int = -1, descending: bool = False) -> torch.return_types.sort:
    """Sorts by comparison: runs are sorted on chip, then merged many at a time. Results are those of :func:`sort`, bit for bit.

    Arguments, shapes, dtypes, order and errors are those of :func:`sort`. Returns the named tuple (values, indices).

    Cost: O(n log n) comparisons, but few passes over the data: one for the runs of up to 8192 elements, and one for each stage of merges.
    A stage merges up to 32 runs at a time; for keys to 32 bits, from some 6 million elements on, up to 128, whose output is cut by a sample
    and whose pieces are sorted by distribution. So 2**26 elements cross memory three times, four times with keys of 64 bits.

    Memory beyond the results, for a 1-D input and int64 indices up to some 2**32 elements: none where the sort fits on chip; else one
    array of records and tables, at most 8.3 bytes an element (12.4 for keys of 64 bits). Without int64 indices to work in, twice that.

    Source: Knuth, The Art of Computer Programming 3, section 5.4.1 (multiway merging); the splits are a multisequence selection (Varman et
    al., 1991), or splitters of a regular sample (Shi and Schaeffer, 1992).

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.merge_sort(torch.tensor([3, 1, 2])).indices
        tensor([1, 2, 0])
    """
    check_sort(dim, descending)
    return _SortResult(call(_ops.merge_sort.default, input, dim, descending))


def bitonic_sort(input: Tensor, dim: int = -1, descending: bool = False) -> torch.return_types.sort:
    """Sorts by a bitonic network, whose comparisons do not depend on the data. Results are those of :func:`sort`, bit for bit.

    A network alone is not stable; this one compares (key, position), no two of which are equal.

    Arguments, shapes, dtypes, order and errors are those of :func:`sort`. Returns the named tuple (values, indices).

    Cost: O(n (log n)**2) compare-exchanges; rows that fit a thread block (8192 elements, 4096 of 64 bits) are read and written once.
    Memory beyond the results: for longer rows 8 bytes per element (16 for 64-bit keys, and for all of 2**32 elements and more).

    Source: Batcher, "Sorting networks and their applications", 1968.

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.bitonic_sort(torch.tensor([1, 3, 1, 2]), descending=True).indices
        tensor([1, 3, 0, 2])
    """
    check_sort(dim, descending)
    return _SortResult(call(_ops.bitonic_sort.default, input, dim, descending))


def sample_sort(input: Tensor, dim: int = -1, descending: bool = False) -> torch.return_types.sort:
    """Sorts by distribution: splitters from a sample cut the data into buckets, which are sorted alone. Results are those of :func:`sort`.

    Equal keys do not unbalance the buckets, because splitters are (key, position) and so cut through them.

    Arguments, shapes, dtypes, order and errors are those of :func:`sort`. Returns the named tuple (values, indices).

    Cost: O(n log n) comparisons; about two passes over the data for each level of buckets, of which there is one up to about a million
    elements. Memory beyond the results, up to some 2**32 elements: two arrays of 8 bytes per element (16 for 64-bit keys), and the samples
    and counts, a tenth of that at most.

    Source: Frazer and McKellar, "Samplesort", 1970; regular sampling by Shi and Schaeffer, 1992.

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.sample_sort(torch.tensor([0.5, -0.0, 0.0])).indices
        tensor([1, 2, 0])
    """
    check_sort(dim, descending)
    return _SortResult(call(_ops.sample_sort.default, input, dim, descending))


def sort_by_key(keys: Tensor, *values: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, ...]:
    """Sorts keys and reorders values in the same way.

    Args:
        keys: as input of :func:`sort`.
        values: any number of tensors of the shape of keys on its device, of any dtypes.
        dim, descending: as :func:`sort`.

    Returns:
        (keys, *values), sorted along dim. Gradients flow through all of them.

    Errors: those of :func:`sort`, and ValueError for values of another shape.

    Cost: one :func:`sort`, and one fetch by index for each of the values.

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.sort_by_key(torch.tensor([2, 1, 2]), torch.tensor([0.5, 1.5, 2.5]), torch.tensor([True, False, True]))
        (tensor([1, 2, 2]), tensor([1.5000, 0.5000, 2.5000]), tensor([False,  True,  True]))
    """
    check_sort(dim, descending)
    check_tensor("keys", keys)
    check_dense("keys", keys)
    for i, tensor in enumerate(values):
        check_tensor(f"values[{i}]", tensor)
        check_dense(f"values[{i}]", tensor)
        if tensor.device != keys.device:
            raise RuntimeError(f"keys is on {keys.device} and values[{i}] on {tensor.device}; all must be on one device")
        if tensor.shape != keys.shape:
            raise ValueError(f"keys has shape {list(keys.shape)} and values[{i}] has shape {list(tensor.shape)}; they must be equal")
    if not values:
        return (sort_keys(keys, dim, descending),)
    sorted_keys, order = sort(keys, dim, descending)
    if isinstance(dim, str):
        dim = dim_of_name(dim, keys.names)
    return (sorted_keys, *(_take(tensor, dim, order) for tensor in values))


def _take(source: Tensor, dim: int, indices: Tensor) -> Tensor:
    """source in the order of the indices, bit for bit."""
    return call(_ops._take.default, source, indices, dim)
