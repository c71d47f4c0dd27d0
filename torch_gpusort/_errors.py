"""Turns what a C++ kernel throws into the Python exception it means.

The stable ABI carries RuntimeError only, so the kernels begin their text with the intended type ("IndexError: Dimension out of range ...").
"""

from __future__ import annotations

import re
from typing import NoReturn

import torch

from . import _library

_TYPES = {
    "IndexError": IndexError,
    "TypeError": TypeError,
    "ValueError": ValueError,
    "RuntimeError": RuntimeError,
    "OutOfMemoryError": torch.OutOfMemoryError,
}
_MARKED = re.compile(rf"\b({'|'.join(_TYPES)}): (.*)", re.DOTALL)
_NOT_THE_MESSAGE = re.compile(r"\n(?:Exception raised from|C\+\+ CapturedTraceback).*", re.DOTALL)


def raise_as_python_error(error: RuntimeError) -> NoReturn:
    text = _NOT_THE_MESSAGE.sub("", str(error))
    marked = _MARKED.search(text)
    if marked is not None and type(error) is RuntimeError:
        raise _TYPES[marked[1]](marked[2].rstrip()) from None
    if text.startswith("gpusort::") and ("Expected a value of type" in text or "argument" in text):
        raise TypeError(text) from None  # torch's argument parser, which raises RuntimeError for operators
    if isinstance(error, NotImplementedError) and "'CUDA' backend" in text and _library.without_cuda:
        raise RuntimeError(f"torch_gpusort has no CUDA kernels here: {_library.without_cuda}. {_library.HOW_TO_BUILD}") from None
    raise error
