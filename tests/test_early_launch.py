"""Kernels are started early only on devices that can: tests/host/early_launch.cpp plays the devices, so no GPU is needed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parent / "host" / "early_launch.cpp"


def cuda_headers() -> Path | None:
    homes = [f"{home}/bin" for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")) if home]
    nvcc = shutil.which("nvcc", path=os.pathsep.join([*homes, os.environ.get("PATH", ""), "/usr/local/cuda/bin"]))
    include = Path(nvcc).resolve().parent.parent / "include" if nvcc else None
    return include if include and (include / "cuda_runtime.h").exists() else None


@pytest.mark.skipif(cuda_headers() is None, reason="needs the CUDA headers")
def test_the_device_of_the_launch_decides(tmp_path):
    program = tmp_path / "early_launch"
    compiler = os.environ.get("CXX", "g++").split()
    subprocess.run([*compiler, "-std=c++17", "-isystem", cuda_headers(), PROGRAM, "-o", program], check=True)
    ran = subprocess.run([program], capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stdout == "passed\n", ran.stdout
