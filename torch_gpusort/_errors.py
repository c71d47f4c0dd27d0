"""Turns what an operator raises into the Python exception it means, in the words of the public functions.

The stable ABI carries RuntimeError only, so the kernels begin their text with the intended type ("IndexError: Dimension out of range ...").
torch's own argument parser raises RuntimeError too, with the whole schema in its text.
"""

from __future__ import annotations

import re
from typing import NoReturn

import torch

from . import _library
from ._fake import ALGORITHMS, MERGE_KERNELS, RADIX_KERNELS

_TYPES = {
    "IndexError": IndexError,
    "TypeError": TypeError,
    "ValueError": ValueError,
    "RuntimeError": RuntimeError,
    "OutOfMemoryError": torch.OutOfMemoryError,
}
_MARKED = re.compile(rf"\b({'|'.join(_TYPES)}): (.*)", re.DOTALL)
_NOT_THE_MESSAGE = re.compile(r"\n(?:Exception raised from|C\+\+ CapturedTraceback).*", re.DOTALL)
_UNFIT_ARGUMENT = re.compile(
    r"^gpusort::_?(\w+)\(\) Expected a value of type '(.+?)' for argument '(\w+)' but instead found type '(.+?)'\.\n"
    r"(?:Position: .*\n)?(?:Value: (.*)\n)?"
)
_UNKNOWN_DTYPE = re.compile(r"Not yet supported ScalarType (\w+)")  # of the stable ABI; index_dtype is the only argument that can be one
_NO_KERNEL = re.compile(r"^Could not run 'gpusort::\w+' with arguments from the '(?:Autograd)?(\w+)' backend")
_ALLOWED = {"Tensor": "a Tensor", "int": "an int of 64 bits", "bool": "a bool", "str": "a str", "Optional[int]": "an int or None"}


def _one_of(names) -> str:
    return f"one of {', '.join(map(repr, names))}"


def _unfit_argument(found: re.Match) -> TypeError:
    op, expected, argument, actual, value = found.groups()
    allowed = _ALLOWED.get(expected, expected)
    if argument == "self":
        argument = "input"
    elif argument == "index_dtype":
        allowed = "torch.int64, torch.int32 or None"
    elif argument == "algorithm":
        argument = "algorithm" if op in ("sort", "explain_sort") else "kernel"
        allowed = _one_of(ALGORITHMS if argument == "algorithm" else RADIX_KERNELS if op == "radix_sort" else MERGE_KERNELS)
    elif argument == "kernel":
        allowed = _one_of(RADIX_KERNELS)
    shown = "" if actual == "Tensor" or not value or len(value) > 60 else f" {value}"
    return TypeError(f"{argument} must be {allowed}, not {actual}{shown}")


def raise_as_python_error(error: RuntimeError) -> NoReturn:
    text = _NOT_THE_MESSAGE.sub("", str(error))
    marked = _MARKED.search(text)
    if marked is not None and type(error) is RuntimeError:
        raise _TYPES[marked[1]](marked[2].rstrip()) from None
    unknown = _UNKNOWN_DTYPE.search(text)
    if unknown is not None:
        raise ValueError(f"index_dtype is torch.{unknown[1].lower()}; allowed are torch.int64 and torch.int32") from None
    unfit = _UNFIT_ARGUMENT.match(text)
    if unfit is not None:
        raise _unfit_argument(unfit) from None
    without = _NO_KERNEL.match(text)
    if without is not None:
        if without[1] == "CUDA" and _library.without_cuda:
            raise RuntimeError(f"torch_gpusort has no CUDA kernels here: {_library.without_cuda}. {_library.HOW_TO_BUILD}") from None
        raise NotImplementedError(
            f"torch_gpusort has no kernels for {without[1]} tensors; it takes dense tensors on CPU and CUDA"
        ) from None
    raise error


def check_tensor(name: str, value: object) -> None:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} must be a Tensor, not {type(value).__name__}") from None


def check_dense(name: str, tensor: torch.Tensor) -> None:
    """What the dispatcher says of other tensors names its own keys and no argument."""
    if tensor.is_nested:
        what = "is a nested tensor"
    elif tensor.layout is not torch.strided:
        what = f"has layout {tensor.layout}"
    elif tensor.is_quantized:
        what = f"is quantized ({tensor.dtype})"
    else:
        return
    raise NotImplementedError(f"{name} {what}; torch_gpusort takes dense tensors on CPU and CUDA") from None


def _shown(value: object) -> str:
    """What was given, for a message: its type, and itself if it is short."""
    text = "" if isinstance(value, torch.Tensor) else repr(value)
    return f"{type(value).__name__} {text}" if text and len(text) <= 60 else type(value).__name__


def _is_numpy_bool(value: object) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # its names in NumPy 2 and 1


def check_bool(name: str, value: object, allowed: str = "a bool") -> None:
    """An operator takes for a bool whatever has a truth value: None, 3, 0.5, a Tensor. Of these only 0 and 1 are meant for one."""
    if value is True or value is False or isinstance(value, torch.SymBool) or _is_numpy_bool(value):
        return
    if isinstance(value, int) and value in (0, 1):
        return
    raise TypeError(f"{name} must be {allowed}, not {_shown(value)}")


def check_dim(dim: object) -> None:
    """An operator takes True for 1, where sort(x, True) is likely meant to be descending. torch refuses it, and so does this."""
    if type(dim) is not int and (isinstance(dim, bool) or _is_numpy_bool(dim)):
        raise TypeError(f"dim must be an int of 64 bits, not {_shown(dim)}")


def check_sort(dim: object, descending: object, stable: object = None) -> None:
    """What sorts take besides the input. Most calls are right, and small ones are many: those are seen at a glance."""
    if type(dim) is int and (descending is False or descending is True) and (stable is True or stable is False or stable is None):
        return
    check_dim(dim)
    check_bool("descending", descending)
    if stable is not None:
        check_bool("stable", stable, "a bool or None")


def check_out(out: object) -> None:
    if isinstance(out, (tuple, list)):
        if len(out) == 2 and all(isinstance(target, torch.Tensor) for target in out):
            return
        given = f"{type(out).__name__} of {', '.join(type(target).__name__ for target in out) or 'nothing'}"
    else:
        given = _shown(out)
    raise TypeError(f"out must be a pair of tensors (values, indices), not {given}")


def dim_of_name(name: str, names: tuple[str | None, ...]) -> int:
    if name not in names:
        raise RuntimeError(f"dim is {name!r}, which is no name of a dimension of input; its names are {names}")
    return names.index(name)
