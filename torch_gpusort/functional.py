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

import itertools
import operator
import warnings
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ._errors import check_bool, check_dense, check_out, check_sort, check_tensor, dim_of_name, raise_as_python_error

_ops = torch.ops.gpusort
_SortResult = torch.return_types.sort
_BelowAutograd = torch._C._AutoDispatchBelowAutograd
_is_compiling = torch.compiler.is_dynamo_compiling  # torch.export without it has a dispatch mode at work
_grad_enabled = torch.is_grad_enabled
_transforms_active = torch._C._are_functorch_transforms_active
_dispatch_modes = torch._C._len_torch_dispatch_stack

_sort = _ops.sort.default
_sort_keys = _ops.sort_keys.default
_argsort = _ops.argsort.default
_merge = _ops.merge.default
_merge_with_indices = _ops.merge_with_indices.default
_merge_by_key = _ops.merge_by_key.default

# An operator's bound function: what calling the operator comes to, without its Python frame. For calls that nothing watches.
_sort_unwatched = _ops._sort.default._op
_sort_keys_unwatched = _ops._sort_keys.default._op
_argsort_unwatched = _ops.argsort.default._op  # indices have no gradient, so autograd has no kernel for it anyway
_merge_unwatched = _ops._merge.default._op
_merge_with_indices_unwatched = _ops._merge_with_indices.default._op
_merge_by_key_unwatched = _ops._merge_by_key.default._op


class MergeResult(NamedTuple):
    """Merged values, and the position in the concatenated inputs, along the last dim, that each came from."""

    values: Tensor
    indices: Tensor


def _unwatched(tensor: Tensor) -> bool:
    """Whether this is a plain tensor, and nobody (autograd, torch.func, a dispatch mode) wants to know what happens to it."""
    return (
        type(tensor) is Tensor
        and not (tensor.requires_grad and _grad_enabled())
        and forward_ad._current_level < 0
        and not _transforms_active()
        and not _dispatch_modes()
    )


def _call(op, first: Tensor, *arguments, **options):
    """Runs an operator of one tensor. Where nothing watches, autograd's part of the dispatch (4 us of Python) is left out."""
    if _is_compiling():
        return op(first, *arguments, **options)
    try:
        if not _unwatched(first):
            return op(first, *arguments, **options)
        with _BelowAutograd():
            return op(first, *arguments, **options)
    except (RuntimeError, AttributeError) as error:
        return _call_again(error, op, first, *arguments, **options)


def _call_short(op, unwatched, input: Tensor, dim: int, descending: bool):
    """Runs an operator that has a short form, by that where nothing watches: small sorts are made often, and this is the least Python."""
    if _is_compiling() or not _unwatched(input):
        return _call(op, input, dim, descending)
    try:
        return unwatched(input, dim, descending)
    except RuntimeError as error:
        return _call_again(error, op, input, dim, descending)


def _call_again(error: Exception, op, first: Tensor, *arguments, **options):
    """After an error: named tensors are taken without their names, all else is said in Python's terms."""
    check_tensor("input", first)
    check_dense("input", first)
    if any(isinstance(tensor, Tensor) and tensor.has_names() for tensor in (first, *arguments)):
        return _call_named(op, first, *arguments, **options)
    raise_as_python_error(error)


def _call_many(op, *tensors: Tensor, **options):
    """Runs an operator of several tensors."""
    if _is_compiling():
        return op(*tensors, **options)
    try:
        return op(*tensors, **options)
    except (RuntimeError, AttributeError) as error:
        _refuse_many(error, op, tensors)


def _call_many_short(op, unwatched, descending: bool, *tensors: Tensor):
    """As :func:`_call_short`, of several tensors. The short form takes them and `descending` alone."""
    if _is_compiling() or not all(map(_unwatched, tensors)):
        return _call_many(op, *tensors, descending=descending)
    try:
        return unwatched(*tensors, descending)
    except RuntimeError as error:
        _refuse_many(error, op, tensors)


def _refuse_many(error: Exception, op, tensors: Sequence[Tensor]) -> NoReturn:
    for argument, tensor in zip(op._schema.arguments, tensors):
        check_tensor(argument.name, tensor)
        check_dense(argument.name, tensor)
        if tensor.has_names():
            raise RuntimeError(
                f"{argument.name} has dimension names {tensor.names}, which are not taken here; drop them with rename(None)"
            ) from None
    raise_as_python_error(error)


def _call_named(op, first: Tensor, *arguments, **options):
    """Named tensors as torch.sort takes them: dim may be a name, and the results have the names of the input."""
    names = first.names
    if arguments and isinstance(arguments[0], str):
        arguments = (dim_of_name(arguments[0], names), *arguments[1:])
    arguments = (argument.rename(None) if isinstance(argument, Tensor) else argument for argument in arguments)
    results = _call(op, first.rename(None), *arguments, **options)
    if isinstance(results, Tensor):
        return results.rename(*names)
    return tuple(result.rename(*names) for result in results)


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
        index_dtype: torch.int64 (the default) or torch.int32, which takes half the bytes in the result, but not in all: long sorts work in
            the memory of int64 indices (see below). ValueError where the dimension is too long for it.
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
    twice, for values and int64 indices: 1 to 8 rows of up to 2**25 keys, 2**23 to 2**26 in all, and 8 to 16 rows of 2**22; with compute
    capability 9.0 or newer, and unless samples show values that are found often.

    Memory beyond the results, for a 1-D input and int64 indices: none below 6144 elements; up to 2**18 elements at most 9.1 bytes an
    element for keys to 32 bits and 18.2 for keys of 64; above, 8.0 bytes for keys of 32 bits (6.2 for 16, 1.1 for 8) and 12.1 for keys of
    64; above some 2**32 elements 13.0 (11.0 for 16, 0.5 for 8) and 17.0. With int32 indices, above 2**18 elements 16.3 bytes for keys of 32
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
        return _SortResult(_call_short(_sort, _sort_unwatched, input, dim, descending))
    return _SortResult(_call(_sort, input, dim, descending, index_dtype=index_dtype, algorithm=algorithm))


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
    """The indices that sort a tensor along one dimension, as torch.argsort. Values are not written at all.

    Arguments, shapes, dtypes, order, errors and source are those of :func:`sort`. Returns the indices, of the shape of input. Memory beyond
    the result, as the sort has none of the keys to work in: as :func:`sort` up to 2**18 elements, and for complex numbers; above, 8.8 bytes
    an element for keys of 32 bits (6.2 for 16, 1.1 for 8) and 20.4 for keys of 64, with int32 indices 16.3 for keys of 32 bits; above some
    2**32 elements 17.0 (13.0 for 16, 0.5 for 8) and 25.0.

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.argsort(torch.tensor([0.5, -0.0, 0.0]))
        tensor([1, 2, 0])
    """
    check_sort(dim, descending, stable)
    if index_dtype is None:
        return _call_short(_argsort, _argsort_unwatched, input, dim, descending)
    return _call(_argsort, input, dim, descending, index_dtype=index_dtype)


def msort(input: Tensor) -> Tensor:
    """The values sorted along the first dimension, as torch.msort: sort_keys(input, dim=0). No index is made or moved.

    Shapes, dtypes, order, errors and source are those of :func:`sort`.

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.msort(torch.tensor([[3, 1], [2, 5]]))
        tensor([[2, 1],
                [3, 5]])
    """
    return _call(_ops.msort.default, input)


def sort_keys(input: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """The sorted values alone. No index is made or moved, so the passes over the data are about half as expensive as in :func:`sort`.

    Shapes, dtypes, order, errors and source are those of :func:`sort`. While a gradient is wanted, indices are made after all. Memory
    beyond the result: as :func:`sort` up to 2**18 elements, and for complex numbers; above, an array of the keys, 4.3 bytes an element for
    32 bits and 8.4 for 64 (2.2 for 16, 0.1 for 8); above some 2**32 elements 5.0 and 9.0 (3.0 and 0.5).

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.sort_keys(torch.tensor([3, 1, 2], dtype=torch.uint16), descending=True)
        tensor([3, 2, 1], dtype=torch.uint16)
    """
    check_sort(dim, descending)
    return _call_short(_sort_keys, _sort_keys_unwatched, input, dim, descending)


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
        return _SortResult(_call(_ops.radix_sort.default, input, dim, descending))
    options = {"begin_bit": begin_bit, "end_bit": end_bit, "algorithm": kernel, "digit_bits": digit_bits}
    return _SortResult(_call(_ops.radix_sort.default, input, dim, descending, **options))


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
    return _SortResult(_call(_ops.merge_sort.default, input, dim, descending))


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
    return _SortResult(_call(_ops.bitonic_sort.default, input, dim, descending))


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
    return _SortResult(_call(_ops.sample_sort.default, input, dim, descending))


def merge(
    a: Tensor, b: Tensor, *, descending: bool = False, return_indices: bool = False, check: bool = False, kernel: str = "auto"
) -> Tensor | MergeResult:
    """Merges two tensors that are sorted along the last dimension, in the same direction. On a tie the elements of a come first.

    Args:
        a, b: tensors of one dtype on one device, of equal shape but for the last dimension, sorted along it. Unsorted inputs give some
            permutation of their elements.
        descending: the direction in which a and b are sorted.
        return_indices: also return where each element came from.
        check: verify that a and b are sorted and raise ValueError if not (RuntimeError under torch.compile, where errors of data can
            not be translated). It costs a read of each and waits for the device.
        kernel: "auto", "sequential", "basic", "tiled" or "circular".

    Returns:
        The merged values, contiguous, of shape (..., m + n); with return_indices the named tuple (values, indices), where int64 indices
        point into cat(a, b) along the last dimension.

    Errors: TypeError for different dtypes, ValueError for shapes that do not fit or a wrong kernel, RuntimeError for different devices.

    Cost: O(m + n): one read and one write of the data, and a binary search per tile. Memory beyond the result: about none.

    Source: merge path, the output split into equal pieces by co-rank (Odeh et al., 2012; Siebert and Traff, 2013).

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.merge(torch.tensor([1, 4]), torch.tensor([2, 4, 9]), return_indices=True).indices
        tensor([0, 2, 1, 3, 4])
    """
    check_bool("descending", descending)
    check_bool("return_indices", return_indices)
    check_bool("check", check)
    op, unwatched = (_merge_with_indices, _merge_with_indices_unwatched) if return_indices else (_merge, _merge_unwatched)
    if check or kernel != "auto":
        results = _call_many(op, a, b, descending=descending, algorithm=kernel, check=check)
    else:
        results = _call_many_short(op, unwatched, descending, a, b)
    return MergeResult(*results) if return_indices else results


def merge_by_key(a_keys: Tensor, a_values: Tensor, b_keys: Tensor, b_values: Tensor, *, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Merges sorted keys and carries a value along with each key. On a tie the pairs of a come first.

    Args:
        a_keys, b_keys: as a and b of :func:`merge`.
        a_values, b_values: of the shape of their keys and of one dtype, which may be any dtype of 1 to 16 bytes.
        descending: the direction in which the keys are sorted.

    Returns:
        (keys, values), contiguous, of shape (..., m + n).

    Errors, cost and source are those of :func:`merge`. Gradients flow through keys and through values.

    Example::

        >>> import torch, torch_gpusort
        >>> keys, values = torch_gpusort.merge_by_key(torch.tensor([1, 3]), torch.tensor([10, 30]), torch.tensor([2]), torch.tensor([20]))
        >>> values
        tensor([10, 20, 30])
    """
    check_bool("descending", descending)
    return _call_many_short(_merge_by_key, _merge_by_key_unwatched, descending, a_keys, a_values, b_keys, b_values)


def merge_many(
    runs: Tensor | Sequence[Tensor], offsets: Tensor | None = None, *, descending: bool = False, return_indices: bool = False
) -> Tensor | MergeResult:
    """Merges any number of sorted runs into one. On a tie the elements of the earlier run come first.

    Args:
        runs: a sequence of 1-D tensors of one dtype on one device, or one 1-D tensor that holds all runs, one after the other. Each is
            sorted; unsorted runs give some permutation of the elements.
        offsets: for one tensor: int64 or int32, one element more than there are runs; run r is runs[offsets[r]:offsets[r + 1]]. It rises
            from 0 to the length of runs. Offsets in host memory are checked (ValueError). Offsets on the GPU are not, so that nothing
            waits for them: those that do not rise are taken as the nearest that do, and nothing is read out of bounds.
        descending: the direction in which the runs are sorted.
        return_indices: also return where each element came from.

    Returns:
        The merged values, 1-D; with return_indices the named tuple (values, indices), where int64 indices point into runs (for a sequence:
        into their concatenation).

    Errors: TypeError for different dtypes, ValueError for shapes that do not fit and for wrong offsets, RuntimeError for different devices.

    Cost: one read and one write of the data for every 32-fold merge: once for up to 32 runs, twice for up to 1024. A sequence is
    concatenated first. Memory beyond the result, up to some 2**32 elements: about none for up to 32 runs, one array of 8 bytes per element
    (12 for 64-bit keys) for up to 1024, two for more; some 17 bytes for each run; and for a sequence a copy of the keys.

    Source: Knuth, The Art of Computer Programming 3, section 5.4.1; the splits are a multisequence selection (Varman et al., 1991).

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.merge_many([torch.tensor([1, 4]), torch.tensor([2, 4]), torch.tensor([0])], return_indices=True)
        MergeResult(values=tensor([0, 1, 2, 4, 4]), indices=tensor([4, 0, 2, 1, 3]))
    """
    check_bool("descending", descending)
    check_bool("return_indices", return_indices)
    if isinstance(runs, Tensor):
        if offsets is None:
            raise ValueError("offsets is None; it is needed where runs is one tensor (a sequence of tensors needs none)")
        offsets = _offsets_for(runs, offsets)
    else:
        if offsets is not None:
            raise ValueError("offsets is given, but runs is a sequence of tensors, whose lengths say where each run ends")
        runs, offsets = _concatenated(runs)
    if return_indices:
        return MergeResult(*_call_many(_ops.merge_many_with_indices.default, runs, offsets, descending=descending))
    return _call_many(_ops.merge_many.default, runs, offsets, descending=descending)


def _offsets_for(runs: Tensor, offsets: Tensor) -> Tensor:
    check_tensor("offsets", offsets)
    check_dense("offsets", offsets)
    if offsets.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"offsets has dtype {offsets.dtype}; allowed are torch.int64 and torch.int32")
    offsets = offsets.long()
    if offsets.device == runs.device or offsets.device.type == "meta":
        return offsets
    on_host = offsets.device.type == "cpu" and not torch.compiler.is_compiling() and offsets.dim() == 1 and offsets.numel() > 0
    if on_host and not (offsets[0] == 0 and offsets[-1] == runs.numel() and bool((offsets[1:] >= offsets[:-1]).all())):
        first, last = int(offsets[0]), int(offsets[-1])
        raise ValueError(f"offsets goes from {first} to {last}; it must rise from 0 to {runs.numel()}, the length of runs")
    return offsets.to(runs.device)


def _concatenated(runs: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """All runs in one tensor, and the offsets of each."""
    runs = _tensors("runs", runs)
    for i, run in enumerate(runs):
        check_dense(f"runs[{i}]", run)
        if run.dim() != 1:
            raise ValueError(f"runs[{i}] has shape {list(run.shape)}; each must have one dim")
        if run.dtype != runs[0].dtype:
            raise TypeError(f"runs[0] has dtype {runs[0].dtype} and runs[{i}] has dtype {run.dtype}; they must be the same")
    ends = list(itertools.accumulate((run.shape[0] for run in runs), initial=0))
    offsets = torch.tensor(ends, device=runs[0].device)
    if runs[0].dtype == torch.bool:  # torch.cat makes every True a one
        return _ViewAs.apply(torch.cat([_ViewAs.apply(run, torch.uint8) for run in runs]), torch.bool), offsets
    return torch.cat(runs), offsets


class _ViewAs(torch.autograd.Function):
    """tensor.view(dtype) of types without a gradient, also under torch.vmap, which has no rule for it."""

    @staticmethod
    def forward(tensor: Tensor, dtype: torch.dtype) -> Tensor:
        return tensor.view(dtype)

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        pass

    @staticmethod
    def vmap(info, in_dims, tensor: Tensor, dtype: torch.dtype):
        return _ViewAs.apply(tensor, dtype), in_dims[0]


def _tensors(name: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    """One or more tensors on one device, as a list."""
    if isinstance(tensors, (str, bytes)) or not isinstance(tensors, (Sequence, Tensor)):
        raise TypeError(f"{name} must be a sequence of tensors, not {type(tensors).__name__}")
    tensors = list(tensors)
    if not tensors:
        raise ValueError(f"{name} is empty; it must hold one tensor or more")
    for i, tensor in enumerate(tensors):
        check_tensor(f"{name}[{i}]", tensor)
        if tensor.device != tensors[0].device:
            raise RuntimeError(f"{name}[0] is on {tensors[0].device} and {name}[{i}] on {tensor.device}; all must be on one device")
    return tensors


def co_rank(k: Tensor, a: Tensor, b: Tensor, *, descending: bool = False) -> Tensor:
    """How many of the first k outputs of merge(a, b) come from a, for each k.

    With i = co_rank(k, a, b) and j = k - i, merging a[:i] with b[:j] gives the first k outputs: the unique split with a[i-1] <= b[j] and
    b[j-1] < a[i], which lets pieces of a merge be made independently.

    Args:
        k: int64 tensor of any shape, each 0 <= k <= len(a) + len(b).
        a, b: 1-D tensors of one dtype, sorted in the same direction.
        descending: that direction.

    Returns:
        int64 tensor of the shape of k.

    Errors: TypeError for k of another dtype and for a and b of different ones, ValueError for a or b that is not 1-D and for a k out of
    bounds (on the CPU; not looked at on a GPU). Cost: about log2(min(len(a), len(b))) comparisons each.

    Source: Siebert and Traff, "Perfectly load-balanced, optimal, stable, parallel merge", 2013.

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.co_rank(torch.tensor([0, 2, 5]), torch.tensor([1, 4]), torch.tensor([2, 4, 9]))
        tensor([0, 1, 2])
    """
    check_bool("descending", descending)
    return _call_many(_ops.co_rank.default, k, a, b, descending=descending)


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
    return _call(_ops._take.default, source, indices, dim)
