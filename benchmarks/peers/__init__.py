"""The peers: CUB's device-wide algorithms of the toolkit in use, measured against and never part of the product.

Each .cu file here becomes a shared library on first use (nvcc, about 14 s each, side by side), kept under build/peers.
`python -m benchmarks.peers sm_90` builds all of them ahead, on a machine without a GPU too.
"""

import concurrent.futures
import os
import pathlib

from benchmarks import native

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ("radix_pairs", "radix_keys", "segmented", "merges")


def cub_version():
    """CUB's version in the toolkit, as "3.0.1"; None where no header is found."""
    root = pathlib.Path(native.find_nvcc()).resolve().parent.parent
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


def build(name, architecture):
    return native.build(HERE / f"{name}.cu", (HERE / "dispatch.h",), architecture, "peers")


def build_all(architecture, names=SOURCES):
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(lambda name: build(name, architecture), names))


def build_for(device, wanted=True, names=SOURCES):
    """Builds the peers for the GPU at hand, if they are wanted; whether there are any (beside a CPU there are none)."""
    import torch

    if not wanted or torch.device(device).type != "cuda":
        return False
    build_all(native.architecture_of(device), names)
    return True


def load(name, architecture):
    return native.load(build(name, architecture))
