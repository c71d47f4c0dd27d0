"""Finds and loads the two libraries beside this file, and explains a failure.

`_C.so` holds the schemas and the CPU kernels. `_C_cuda.so` holds the CUDA kernels and is loaded only where torch itself has CUDA.
Loading registers operators and nothing else: neither torch's CUDA state nor the driver is started.
"""

from __future__ import annotations

from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
OLDEST_TORCH = (2, 11)
HOW_TO_BUILD = (
    "Build it for this torch in the source folder, with `pip install --no-build-isolation .` or `python setup.py build_ext --inplace`, "
    "or leave the source folder, if it is installed. "
    "CUDA kernels need nvcc in CUDA_HOME or PATH; GPUSORT_CUDA=0 leaves them out."
)

loaded: list[Path] = []
without_cuda = ""  # why there are no CUDA kernels; empty when there are


def _failure(library: Path, reason: str) -> ImportError:
    return ImportError(
        f"torch_gpusort could not load {library}: {reason}\n"
        f"  found: torch {torch.__version__} in {Path(torch.__file__).parent}, with CUDA {torch.version.cuda or '(none: a CPU build)'}\n"
        f"  to do: {HOW_TO_BUILD}"
    )


def _load(library: Path) -> None:
    try:
        torch.ops.load_library(library)
    except OSError as error:
        raise _failure(library, str(error)) from error
    loaded.append(library)


def load_libraries() -> None:
    global without_cuda
    main, cuda = HERE / "_C.so", HERE / "_C_cuda.so"
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST_TORCH:
        raise _failure(main, f"it needs torch {OLDEST_TORCH[0]}.{OLDEST_TORCH[1]} or newer")
    if not main.exists():
        raise _failure(main, "there is no such file")
    _load(main)
    if torch.version.cuda is None:
        without_cuda = f"torch {torch.__version__} has no CUDA"
    elif not cuda.exists():
        without_cuda = f"{cuda} does not exist: torch_gpusort was built without nvcc"
    else:
        _load(cuda)
