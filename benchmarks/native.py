"""Compiles CUDA sources of the benchmarks into shared libraries of C functions on first use, and loads them.

A library lies in build/<folder>, under a name that holds a hash of its source, of what it includes, the flags, the compiler and the GPU
architecture, so that a changed one is built again.
"""

import ctypes
import functools
import hashlib
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = ["-O3", "-std=c++17", "-cudart", "static", "-shared", "-Xcompiler", "-fPIC"]


@functools.lru_cache
def find_nvcc():
    """The path of nvcc: $CUDA_HOME, then the PATH, then /usr/local/cuda. RuntimeError where there is none."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    found = [pathlib.Path(home) / "bin" / "nvcc"] if home else []
    found += [pathlib.Path(path) for path in (shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc") if path]
    for path in found:
        if path.is_file():
            return str(path)
    raise RuntimeError(
        "nvcc is needed: set CUDA_HOME or put nvcc on the PATH; where CUB's peers alone need it, --skip-peers leaves them out"
    )


@functools.lru_cache
def nvcc_version():
    return subprocess.run([find_nvcc(), "--version"], check=True, capture_output=True, text=True).stdout


def library_path(source, includes, architecture, folder):
    """Where the library of one source lies."""
    texts = [path.read_text() for path in (source, *includes)] + [*FLAGS, architecture, nvcc_version()]
    return ROOT / "build" / folder / f"{source.stem}_{architecture}_{hashlib.sha256(''.join(texts).encode()).hexdigest()[:16]}.so"


def build(source, includes, architecture, folder):
    """Compile one source unless its library is there; returns the path. Written beside and moved in place, so that a half-written one is
    never loaded."""
    path = library_path(source, includes, architecture, folder)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.so")
        command = [find_nvcc(), *FLAGS, f"-arch={architecture}", "-o", str(unfinished), str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"building {source.name} failed: {' '.join(command)}\n{done.stdout}{done.stderr}")
        os.replace(unfinished, path)
    return path


@functools.lru_cache
def load(path):
    return ctypes.CDLL(str(path))


def architecture_of(device):
    import torch

    return "sm_{}{}".format(*torch.cuda.get_device_capability(device))
