"""Gradients of the ops, attached at the dispatcher's Autograd key so that functions, raw ops and compiled graphs all have them.

Every differentiable op here moves elements and does no arithmetic: outputs = cat(parts)[indices]. So the gradient of a part is the outputs'
gradient sent back to where each element came from (a scatter by the same indices, which are a permutation), and a tangent travels as the
element does (a gather). Both are ordinary differentiable operations, which gives higher orders and mixed modes.

The functions call ops whose names begin with an underscore where no gradient is wanted; autograd does not see those, but for _take.

Ops whose schema returns no indices (sort_keys, msort, merge, merge_by_key, merge_many) run their indexed sibling while a gradient is
wanted.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

_BelowAutograd = torch._C._AutoDispatchBelowAutograd
_AFTER_AUTOGRAD = torch._C._after_autograd_keyset
_registered: list[torch.library.Library] = []  # registrations live as long as their Library object


def _indexed_dtype(tensor: Tensor) -> torch.dtype:
    """That of the tensor, or where torch does not index it, one that it does and that holds each of its values exactly."""
    if tensor.dtype is torch.complex32:
        return torch.complex64
    return torch.float32 if tensor.is_floating_point() and tensor.element_size() == 1 else tensor.dtype


def _take(source: Tensor, dim: int, indices: Tensor) -> Tensor:
    """source in the order of the results."""
    return source.to(_indexed_dtype(source)).gather(dim, indices.long()).to(source.dtype)


def _send_back(gradient: Tensor, dim: int, indices: Tensor) -> Tensor:
    """The inverse of _take. Every element is written, because the indices are a permutation."""
    wide = gradient.to(_indexed_dtype(gradient))
    return torch.empty_like(wide).scatter(dim, indices.long(), wide).to(gradient.dtype)


def _differentiable(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


# torch.func applies an op once per level, each level with a graph of its own: hence the single-level form of autograd.Function.
class _Permute(torch.autograd.function._SingleLevelFunction):
    """Columns of parts, all permuted alike: column c of the result is cat(parts of c, dim) in the order of the indices.

    `compute(*parts)` runs the op below autograd and returns the columns, then the indices. `parts` are its tensors, column by column.
    """

    @staticmethod
    def forward(ctx, compute: Callable[..., tuple[Tensor, ...]], dim: int, columns: int, *parts: Tensor):
        *results, indices = compute(*parts)
        ctx.dim = dim
        ctx.per_column = len(parts) // columns
        ctx.sizes = [part.shape[dim] if part.dim() else 1 for part in parts]
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(indices, *(result for result in results if not _differentiable(result)))
        ctx.save_for_backward(indices)
        ctx.save_for_forward(indices, *parts)
        return (*results, indices)

    @staticmethod
    def backward(ctx, *gradients: Tensor | None):
        (indices,) = ctx.saved_tensors
        needed = ctx.needs_input_grad[3:]
        parts: list[Tensor | None] = [None] * len(needed)
        for column, gradient in enumerate(gradients[:-1]):
            window = slice(column * ctx.per_column, (column + 1) * ctx.per_column)
            if gradient is None or not any(needed[window]):
                continue
            whole = _send_back(gradient, ctx.dim, indices)
            pieces = whole.split(ctx.sizes[window], ctx.dim) if ctx.per_column > 1 else (whole,)
            parts[window] = [piece if need else None for piece, need in zip(pieces, needed[window])]
        return None, None, None, *parts

    @staticmethod
    def jvp(ctx, *tangents: Tensor | None):
        indices, *parts = ctx.saved_tensors
        tangents = tangents[3:]
        results: list[Tensor | None] = []
        for first in range(0, len(parts), ctx.per_column):
            window = slice(first, first + ctx.per_column)
            if all(tangent is None for tangent in tangents[window]):
                results.append(None)
                continue
            whole = [torch.zeros_like(part) if tangent is None else tangent for part, tangent in zip(parts[window], tangents[window])]
            results.append(_take(torch.cat(whole, ctx.dim) if len(whole) > 1 else whole[0], ctx.dim, indices))
        return (*results, None)


def _permute(compute: Callable[..., tuple[Tensor, ...]], dim: int, columns: int, *parts: Tensor) -> tuple[Tensor, ...]:
    reverse, forward = torch.is_grad_enabled(), torch._C._is_fwd_grad_enabled()

    def lower(*parts: Tensor) -> tuple[Tensor, ...]:
        # An autograd.Function switches both modes off inside; the levels below this one still need them.
        with torch.set_grad_enabled(reverse), forward_ad._set_fwd_grad_enabled(forward), _BelowAutograd():
            return compute(*parts)

    with enable_single_level_autograd_function():  # torch.func refuses the single-level form elsewhere
        return _Permute.apply(lower, dim, columns, *parts)


def gradient_wanted(*tensors: Tensor) -> bool:
    if forward_ad._current_level >= 0 and torch._C._is_fwd_grad_enabled():
        return True
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _sort_kernel(op, indexed, returns: str):
    """The Autograd kernel of an op (self, dim=-1, ...): `indexed` has the same arguments and returns (values, indices)."""

    def kernel(keyset, self: Tensor, dim: int = -1, *args, **options):
        below = keyset & _AFTER_AUTOGRAD
        if not gradient_wanted(self):
            return op.redispatch(below, self, dim, *args, **options)
        values, indices = _permute(lambda part: indexed.redispatch(below, part, dim, *args, **options), dim, 1, self)
        return values if returns == "values" else (values, indices)

    return kernel


def _msort_kernel(keyset, self: Tensor):
    below = keyset & _AFTER_AUTOGRAD
    if not gradient_wanted(self):
        return torch.ops.gpusort.msort.default.redispatch(below, self)
    return _permute(lambda part: torch.ops.gpusort.sort.default.redispatch(below, part, 0), 0, 1, self)[0]


def _merge_kernel(op, indexed, returns: str):
    """The Autograd kernel of an op (a, b, *, ...): `indexed` has the same arguments and returns (values, indices)."""

    def kernel(keyset, a: Tensor, b: Tensor, **options):
        below = keyset & _AFTER_AUTOGRAD
        if not gradient_wanted(a, b):
            return op.redispatch(below, a, b, **options)
        values, indices = _permute(lambda *parts: indexed.redispatch(below, *parts, **options), -1, 1, a, b)
        return values if returns == "values" else (values, indices)

    return kernel


def _merge_many_kernel(op, indexed, returns: str):
    """The Autograd kernel of an op (runs, offsets, *, ...): `indexed` has the same arguments and returns (values, indices)."""

    def kernel(keyset, runs: Tensor, offsets: Tensor, **options):
        below = keyset & _AFTER_AUTOGRAD
        if not gradient_wanted(runs):
            return op.redispatch(below, runs, offsets, **options)
        values, indices = _permute(lambda part: indexed.redispatch(below, part, offsets, **options), 0, 1, runs)
        return values if returns == "values" else (values, indices)

    return kernel


def _merge_by_key_kernel(keyset, a_keys: Tensor, a_values: Tensor, b_keys: Tensor, b_values: Tensor, **options):
    below = keyset & _AFTER_AUTOGRAD
    ops = torch.ops.gpusort
    if not gradient_wanted(a_keys, a_values, b_keys, b_values):
        return ops.merge_by_key.default.redispatch(below, a_keys, a_values, b_keys, b_values, **options)

    def compute(a_keys, b_keys, a_values, b_values):
        results = ops.merge_by_key.default.redispatch(below, a_keys, a_values, b_keys, b_values, **options)
        return *results, ops.merge_with_indices.default.redispatch(below, a_keys, b_keys, **options)[1]

    return _permute(compute, -1, 2, a_keys, b_keys, a_values, b_values)[:2]


def _take_kernel(keyset, self: Tensor, indices: Tensor, dim: int):
    op, below = torch.ops.gpusort._take.default, keyset & _AFTER_AUTOGRAD
    if not gradient_wanted(self):
        return op.redispatch(below, self, indices, dim)
    return _permute(lambda part: (op.redispatch(below, part, indices, dim), indices.detach()), dim, 1, self)[0]


def register() -> None:
    ops = torch.ops.gpusort
    sort, merge, merge_many = ops.sort.default, ops.merge_with_indices.default, ops.merge_many_with_indices.default
    kernels = {
        "sort": _sort_kernel(sort, sort, "both"),
        "sort_keys": _sort_kernel(ops.sort_keys.default, sort, "values"),
        "radix_sort": _sort_kernel(ops.radix_sort.default, ops.radix_sort.default, "both"),
        "merge_sort": _sort_kernel(ops.merge_sort.default, ops.merge_sort.default, "both"),
        "bitonic_sort": _sort_kernel(ops.bitonic_sort.default, ops.bitonic_sort.default, "both"),
        "sample_sort": _sort_kernel(ops.sample_sort.default, ops.sample_sort.default, "both"),
        "msort": _msort_kernel,
        "merge": _merge_kernel(ops.merge.default, merge, "values"),
        "merge_with_indices": _merge_kernel(merge, merge, "both"),
        "merge_by_key": _merge_by_key_kernel,
        "_take": _take_kernel,
        "merge_many": _merge_many_kernel(ops.merge_many.default, merge_many, "values"),
        "merge_many_with_indices": _merge_many_kernel(merge_many, merge_many, "both"),
    }
    library = torch.library.Library("gpusort", "IMPL")
    for name, kernel in kernels.items():
        library.impl(name, kernel, "Autograd", with_keyset=True)
    _registered.append(library)
