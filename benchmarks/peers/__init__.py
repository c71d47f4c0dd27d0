"""Builds and loads the peers: CUB's device-wide algorithms of the toolkit in use, measured against and never part of the product.

Each .cu file here becomes a shared library of C functions on first use (nvcc, about 14 s each, side by side), kept under build/peers by a
hash of its source, the compiler and the GPU architecture. `python -m benchmarks.peers sm_90` builds all of them ahead, on a machine
without a GPU too.
"""

import concurrent.futures
import ctypes
import functools
import hashlib
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build" / "peers"
SOURCES = ("radix_pairs", "radix_keys", "segmented", "merges")
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
    raise RuntimeError("the peers need nvcc: set CUDA_HOME, put nvcc on the PATH, or leave the peers out (--skip-peers)")


@functools.lru_cache
def nvcc_version():
    return subprocess.run([find_nvcc(), "--version"], check=True, capture_output=True, text=True).stdout


def cub_version():
    """CUB's version in the toolkit, as "3.0.1"; None where no header is found."""
    root = pathlib.Path(find_nvcc()).resolve().parent.parent
    for header in [
        *root.glob("include/cccl/cub/version.cuh"),
        *root.glob("include/cub/version.cuh"),
        *root.glob("targets/*/include/cccl/cub/version.cuh"),
    ]:
        for line in header.read_text().splitlines():
            words = line.split()
            if words[:2] == ["#define", "CUB_VERSION"] and words[2].isdigit():
                number = int(words[2])
                return f"{number // 100000}.{number // 100 % 1000}.{number % 100}"
    return None


def library_path(name, architecture):
    """Where the library of one source lies; the name changes with its source, flags, compiler and architecture."""
    text = (HERE / f"{name}.cu").read_text() + (HERE / "dispatch.h").read_text() + " ".join(FLAGS) + architecture + nvcc_version()
    return BUILD / f"{name}_{architecture}_{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"


def build(name, architecture):
    """Compile one source unless its library is there; returns the path. Written beside and moved in place, so that a half-written one is
    never loaded."""
    path = library_path(name, architecture)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.so")
        command = [find_nvcc(), *FLAGS, f"-arch={architecture}", "-o", str(unfinished), str(HERE / f"{name}.cu")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"building the peer {name} failed: {' '.join(command)}\n{done.stdout}{done.stderr}")
        os.replace(unfinished, path)
    return path


def build_all(architecture, names=SOURCES):
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(lambda name: build(name, architecture), names))


def build_for(device, wanted=True, names=SOURCES):
    """Builds the peers for the GPU at hand, if they are wanted; whether there are any (beside a CPU there are none)."""
    import torch

    if not wanted or torch.device(device).type != "cuda":
        return False
    build_all("sm_{}{}".format(*torch.cuda.get_device_capability(device)), names)
    return True


@functools.lru_cache
def load(name, architecture):
    return ctypes.CDLL(str(build(name, architecture)))
