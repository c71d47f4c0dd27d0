"""Sorting by several keys: the public functions lexsort and sort_rows, and what their operators need of autograd, vmap and fake tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

import torch
from torch import Tensor

from ._autograd import _AFTER_AUTOGRAD, _permute, _registered, gradient_wanted
from ._errors import check_bool, check_dense, check_dim, check_tensor, raise_as_python_error
from ._fake import check_dtype, wrap_dim


class SortRowsResult(NamedTuple):
    """The rows in order, and the row of the input that each of them was."""

    values: Tensor
    indices: Tensor


def _run(op, *arguments):
    if torch.compiler.is_compiling():
        return op(*arguments)
    try:
        return op(*arguments)
    except RuntimeError as error:
        raise_as_python_error(error)


def lexsort(keys: Tensor | Sequence[Tensor], dim: int = -1, descending: bool | Sequence[bool] = False) -> Tensor:
    """The indices that sort by several keys, as numpy.lexsort: the last key is the primary one, the one before it decides its ties, etc.

    Args:
        keys: a sequence of tensors of equal shape on one device, each of any dtype; or one tensor whose first dimension counts the keys.
            Each is ordered as :func:`sort` orders it, NaN and complex NaN too.
        dim: the dimension of the keys to sort along.
        descending: one bool for all keys, or one for each.

    Returns:
        int64 indices, contiguous, of the shape of a key. Stable: elements that are equal in all keys keep their input order.

    Errors: those of :func:`sort`, and ValueError for no key, keys of different shapes and a wrong number of directions.

    Cost: the keys are packed into words of 64 bits. Keys that fit one word together take one sort of it, whatever their values. On a GPU,
    large sorts of more keys take one read for the ranges of the keys, which narrows them, one sort by the leading 64 bits, and a repair of
    what ties in these; where it finds that many do, also one sort for each of the other words and one of 32 bits. Elsewhere one sort per
    word. Memory beyond the result: up to 2**18 elements at most 41 bytes per element (33 where one word holds all keys); above, 37 (29) up
    to 2**31 elements; and a copy of keys that are not contiguous, where there are several rows to sort.

    Source: sorting by one key after the other, least significant first, is the principle of the radix sort itself (Knuth, The Art of
    Computer Programming 3, section 5.2.5). The packing and the repair are this project's.

    Example::

        >>> import torch, torch_gpusort
        >>> surnames, names = torch.tensor([2, 1, 2, 1]), torch.tensor([1, 9, 0, 3])
        >>> torch_gpusort.lexsort((names, surnames))
        tensor([3, 1, 2, 0])
        >>> torch_gpusort.lexsort((names, surnames), descending=(False, True))
        tensor([2, 0, 3, 1])
    """
    if isinstance(keys, (str, bytes)) or not isinstance(keys, (Sequence, Tensor)):
        raise TypeError(f"keys must be a sequence of tensors, not {type(keys).__name__}")
    if isinstance(keys, Tensor):
        check_dense("keys", keys)
        if keys.dim() == 0:
            raise ValueError("keys has no dims; a tensor of keys must have one or more, the first of which counts the keys")
    check_dim(dim)
    keys = list(keys)
    for i, key in enumerate(keys):
        check_tensor(f"keys[{i}]", key)
        check_dense(f"keys[{i}]", key)
        if key.device != keys[0].device:
            raise RuntimeError(f"keys[0] is on {keys[0].device} and keys[{i}] on {key.device}; all must be on one device")
        if not torch.compiler.is_compiling() and key.has_names():
            raise RuntimeError(f"keys[{i}] has dimension names {key.names}, which are not taken here; drop them with rename(None)")
    if not keys:
        raise ValueError("keys is empty; it must hold one tensor or more")
    return _run(torch.ops.gpusort.lexsort.default, [key.detach() for key in keys], dim, _directions(descending, len(keys)))


def _directions(descending: bool | Sequence[bool], keys: int) -> list[bool]:
    if isinstance(descending, str) or not isinstance(descending, Iterable) or getattr(descending, "shape", None) == ():
        check_bool("descending", descending)
        return [descending] * keys
    if isinstance(descending, (Set, Mapping)):
        raise TypeError(f"descending must be a bool or a sequence of bools, not {type(descending).__name__}, which has no order")
    directions = list(descending)
    for i, direction in enumerate(directions):
        check_bool(f"descending[{i}]", direction)
    return directions


def sort_rows(input: Tensor, descending: bool = False) -> SortRowsResult:
    """The rows of a matrix in lexicographic order: by the first column, rows equal in it by the second, and so on.

    Args:
        input: tensor of two dimensions, of any strides and any dtype listed in :mod:`torch_gpusort.functional`.
        descending: the mirror image of the order. Equal rows keep their input order all the same.

    Returns:
        The named tuple (values, indices): the rows in order, contiguous, of the shape of input, and int64 indices of one dimension, so that
        values is input[indices]. Gradients flow through values.

    Errors: those of :func:`sort`, and ValueError for an input that has not two dimensions.

    Cost, memory and source: those of :func:`lexsort` with the columns as keys, and one fetch of the rows by index. Columns are read where
    they lie.

    Example::

        >>> import torch, torch_gpusort
        >>> torch_gpusort.sort_rows(torch.tensor([[2, 1], [1, 9], [2, 0]])).values
        tensor([[1, 9],
                [2, 0],
                [2, 1]])
    """
    check_tensor("input", input)
    check_dense("input", input)
    check_bool("descending", descending)
    if not torch.compiler.is_compiling() and input.has_names():
        values, indices = sort_rows(input.rename(None), descending)
        return SortRowsResult(values.rename(*input.names), indices.rename(*input.names[:1]))
    return SortRowsResult(*_run(torch.ops.gpusort.sort_rows.default, input, descending))


# ---- fake tensors


def _fake_lexsort(keys: list[Tensor], dim: int = -1, descending: Sequence[bool] | None = None):
    if not keys:
        raise ValueError("keys is empty; it must hold one tensor or more")
    if descending is not None and len(descending) != len(keys):
        raise ValueError(f"descending has {len(descending)} elements, but there are {len(keys)} keys; it must be one bool or one per key")
    for i, key in enumerate(keys):
        check_dtype(f"keys[{i}]", key)
        if key.device != keys[0].device:
            raise RuntimeError(f"keys[0] is on {keys[0].device} and keys[{i}] on {key.device}; all must be on one device")
        shapes = f"keys[0] has shape {list(keys[0].shape)} and keys[{i}] has shape {list(key.shape)}; they must be equal"
        if key.dim() != keys[0].dim():
            raise ValueError(shapes)
        for left, right in zip(key.shape, keys[0].shape):
            torch._check_value(left == right, lambda shapes=shapes: shapes)
    wrap_dim(dim, keys[0].dim())
    return keys[0].new_empty(keys[0].shape, dtype=torch.int64)


def _fake_sort_rows(self: Tensor, descending: bool = False):
    check_dtype("input", self)
    if self.dim() != 2:
        raise ValueError(f"input has shape {list(self.shape)}; it must have two dims, rows and columns")
    return self.new_empty(self.shape), self.new_empty(self.shape[:1], dtype=torch.int64)


# ---- vmap


def _batched_lexsort(info, in_dims, keys: list[Tensor], dim: int = -1, descending: Sequence[bool] | None = None):
    size = info.batch_size
    keys = [key.expand(size, *key.shape) if at is None else key.movedim(at, 0) for key, at in zip(keys, in_dims[0])]
    dim = wrap_dim(dim, keys[0].dim() - 1)
    if keys[0].dim() > 1:
        return torch.ops.gpusort.lexsort(keys, dim + 1, descending), 0
    return torch.ops.gpusort.lexsort([key.unsqueeze(1) for key in keys], 1, descending).squeeze(1), 0  # scalars: rows of one


def _batched_sort_rows(info, in_dims, self: Tensor, descending: bool = False):
    examples = self.movedim(in_dims[0], 0)
    if info.batch_size == 0:
        return (examples.new_empty(examples.shape), examples.new_empty(examples.shape[:2], dtype=torch.int64)), (0, 0)
    results = [torch.ops.gpusort.sort_rows(example, descending) for example in examples.unbind(0)]
    return tuple(torch.stack(parts) for parts in zip(*results)), (0, 0)


# ---- autograd


def _sort_rows_with_gradient(keyset, self: Tensor, descending: bool = False):
    op, below = torch.ops.gpusort.sort_rows.default, keyset & _AFTER_AUTOGRAD
    if not gradient_wanted(self) or self.dim() != 2:
        return op.redispatch(below, self, descending)
    if self.shape[1] == 0:  # no element to point at
        return self.clone(memory_format=torch.contiguous_format), op.redispatch(below, self, descending)[1]

    def compute(part: Tensor) -> tuple[Tensor, Tensor]:
        values, indices = op.redispatch(below, part, descending)
        return values, indices.unsqueeze(1).expand(values.shape)

    values, indices = _permute(compute, 0, 1, self)
    return values, indices[:, 0].contiguous()


# ---- TorchScript


def _lexsort_of_a_copy(keyset, keys: list[Tensor], dim: int = -1, descending: Sequence[bool] | None = None):
    """Hands the operator a list of its own: the stable ABI (torch 2.11) moves the tensors out of the list that it is called with, which
    TorchScript and its caller still hold."""
    below = keyset & torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
    return torch.ops.gpusort.lexsort.default.redispatch(below, keys, dim, descending)


def register() -> None:
    torch.library.register_fake("gpusort::lexsort", _fake_lexsort)
    torch.library.register_fake("gpusort::sort_rows", _fake_sort_rows)
    library = torch.library.Library("gpusort", "IMPL")
    library.impl("lexsort", _lexsort_of_a_copy, "BackendSelect", with_keyset=True)
    library.impl("sort_rows", _sort_rows_with_gradient, "Autograd", with_keyset=True)
    _registered.append(library)
    torch.library.register_vmap("gpusort::lexsort", _batched_lexsort)
    torch.library.register_vmap("gpusort::sort_rows", _batched_sort_rows)
