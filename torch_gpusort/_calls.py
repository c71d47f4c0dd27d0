"""How the public functions call operators: with the least Python where nothing watches, and with errors in Python's terms.

An operator that is called often has a short form beside it: one without an autograd kernel, whose bound function is called directly. It is
taken where nobody (autograd, torch.func, a dispatch mode) wants to know what happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ._errors import check_dense, check_tensor, dim_of_name, raise_as_python_error

_BelowAutograd = torch._C._AutoDispatchBelowAutograd
_is_compiling = torch.compiler.is_dynamo_compiling  # torch.export without it has a dispatch mode at work
_grad_enabled = torch.is_grad_enabled
_transforms_active = torch._C._are_functorch_transforms_active
_dispatch_modes = torch._C._len_torch_dispatch_stack


def short_form(op):
    """An operator's bound function: what calling the operator comes to, without its Python frame."""
    return op._op


def _unwatched(tensor: Tensor) -> bool:
    """Whether this is a plain tensor, and nobody (autograd, torch.func, a dispatch mode) wants to know what happens to it."""
    return (
        type(tensor) is Tensor
        and not (tensor.requires_grad and _grad_enabled())
        and forward_ad._current_level < 0
        and not _transforms_active()
        and not _dispatch_modes()
    )


def call(op, first: Tensor, *arguments, **options):
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


def call_short(op, unwatched, input: Tensor, dim: int, descending: bool):
    """Runs an operator that has a short form, by that where nothing watches: small sorts are made often, and this is the least Python."""
    if _is_compiling() or not _unwatched(input):
        return call(op, input, dim, descending)
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


def call_many(op, *tensors: Tensor, **options):
    """Runs an operator of several tensors."""
    if _is_compiling():
        return op(*tensors, **options)
    try:
        return op(*tensors, **options)
    except (RuntimeError, AttributeError) as error:
        _refuse_many(error, op, tensors)


def call_many_short(op, unwatched, descending: bool, *tensors: Tensor):
    """As :func:`call_short`, of several tensors. The short form takes them and `descending` alone."""
    if _is_compiling() or not all(map(_unwatched, tensors)):
        return call_many(op, *tensors, descending=descending)
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
    results = call(op, first.rename(None), *arguments, **options)
    if isinstance(results, Tensor):
        return results.rename(*names)
    return tuple(result.rename(*names) for result in results)
