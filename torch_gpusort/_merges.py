"""The public functions that merge what is sorted already. Order, dtypes and errors are those of :mod:`torch_gpusort.functional`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ._calls import call_many, call_many_short, short_form
from ._errors import check_bool, check_dense, check_tensor

_ops = torch.ops.gpusort

_merge = _ops.merge.default
_merge_with_indices = _ops.merge_with_indices.default
_merge_by_key = _ops.merge_by_key.default

# For calls that nothing watches.
_merge_unwatched = short_form(_ops._merge.default)
_merge_with_indices_unwatched = short_form(_ops._merge_with_indices.default)
_merge_by_key_unwatched = short_form(_ops._merge_by_key.default)


class MergeResult(NamedTuple):
    """Merged values, and the position in the concatenated inputs, along the last dim, that each came from."""

    values: Tensor
    indices: Tensor


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
        results = call_many(op, a, b, descending=descending, algorithm=kernel, check=check)
    else:
        results = call_many_short(op, unwatched, descending, a, b)
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
    return call_many_short(_merge_by_key, _merge_by_key_unwatched, descending, a_keys, a_values, b_keys, b_values)


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
        return MergeResult(*call_many(_ops.merge_many_with_indices.default, runs, offsets, descending=descending))
    return call_many(_ops.merge_many.default, runs, offsets, descending=descending)


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
    return call_many(_ops.co_rank.default, k, a, b, descending=descending)
