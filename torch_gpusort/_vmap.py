"""Batching rules for torch.vmap. The mapped dimension goes to the front and the op runs once over the whole batch.

A sort along `dim` of each example is a sort along `dim` shifted by one; merges take leading dimensions anyway. Only co_rank with mapped
inputs and merge_many (1-D per example) are loops.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ._fake import wrap_dim


def _sort_like(op, outputs: int):
    """The rule of an op (self, dim=-1, ...) whose results have the shape of self."""

    def rule(info, in_dims, self: Tensor, dim: int = -1, *args, **options):
        self = self.movedim(in_dims[0], 0)
        dim = wrap_dim(dim, self.dim() - 1)
        if self.dim() > 1:
            return op(self, dim + 1, *args, **options), (0,) * outputs if outputs > 1 else 0
        result = op(self.unsqueeze(1), 1, *args, **options)  # each example is a scalar: a row of one
        if outputs > 1:
            return tuple(part.squeeze(1) for part in result), (0,) * outputs
        return result.squeeze(1), 0

    return rule


def _msort(info, in_dims, self: Tensor):
    self = self.movedim(in_dims[0], 0)
    if self.dim() > 1:
        return torch.ops.gpusort.sort_keys(self, 1), 0
    return torch.ops.gpusort.sort_keys(self.unsqueeze(1), 1).squeeze(1), 0


def _batched(tensor: Tensor, in_dim: int | None, size: int) -> Tensor:
    return tensor.expand(size, *tensor.shape) if in_dim is None else tensor.movedim(in_dim, 0)


def _merge_like(op, outputs: int):
    """The rule of an op over tensors that are merged along the last dimension."""

    def rule(info, in_dims, *tensors: Tensor, **options):
        result = op(*(_batched(tensor, in_dim, info.batch_size) for tensor, in_dim in zip(tensors, in_dims)), **options)
        return result, (0,) * outputs if outputs > 1 else 0

    return rule


def _take(info, in_dims, self: Tensor, indices: Tensor, dim: int):
    self, indices = (_batched(tensor, in_dim, info.batch_size) for tensor, in_dim in zip((self, indices), in_dims))
    if self.dim() == 1:  # each example is a scalar
        return torch.ops.gpusort._take(self.unsqueeze(1), indices.unsqueeze(1), 1).squeeze(1), 0
    return torch.ops.gpusort._take(self, indices, wrap_dim(dim, self.dim() - 1) + 1), 0


def _co_rank(info, in_dims, k: Tensor, a: Tensor, b: Tensor, **options):
    if in_dims[1] is None and in_dims[2] is None:
        return torch.ops.gpusort.co_rank(k, a, b, **options), in_dims[0]
    examples = zip(*(_batched(tensor, in_dim, info.batch_size) for tensor, in_dim in zip((k, a, b), in_dims)))
    return torch.stack([torch.ops.gpusort.co_rank(*example, **options) for example in examples]), 0


def _merge_many(op, outputs: int):
    def rule(info, in_dims, *tensors: Tensor, **options):
        runs, offsets = (_batched(tensor, in_dim, info.batch_size) for tensor, in_dim in zip(tensors, in_dims))
        if info.batch_size == 0:
            values, indices = runs.new_empty(runs.shape), runs.new_empty(runs.shape, dtype=torch.int64)
            return ((values, indices), (0, 0)) if outputs > 1 else (values, 0)
        results = [op(*example, **options) for example in zip(runs, offsets)]
        if outputs > 1:
            return tuple(torch.stack(parts) for parts in zip(*results)), (0,) * outputs
        return torch.stack(results), 0

    return rule


def register() -> None:
    ops = torch.ops.gpusort
    rules = {
        "sort": _sort_like(ops.sort, 2),
        "argsort": _sort_like(ops.argsort, 1),
        "msort": _msort,
        "sort_keys": _sort_like(ops.sort_keys, 1),
        "radix_sort": _sort_like(ops.radix_sort, 2),
        "merge_sort": _sort_like(ops.merge_sort, 2),
        "bitonic_sort": _sort_like(ops.bitonic_sort, 2),
        "sample_sort": _sort_like(ops.sample_sort, 2),
        "merge": _merge_like(ops.merge, 1),
        "merge_with_indices": _merge_like(ops.merge_with_indices, 2),
        "merge_by_key": _merge_like(ops.merge_by_key, 2),
        "merge_many": _merge_many(ops.merge_many, 1),
        "merge_many_with_indices": _merge_many(ops.merge_many_with_indices, 2),
        "co_rank": _co_rank,
        "_take": _take,
    }
    for name, rule in rules.items():
        torch.library.register_vmap(f"gpusort::{name}", rule)
