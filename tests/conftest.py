"""Devices, markers and the line that says what needed a GPU."""

import gc
import os

# Where other programs use the cores too, threads that spin while they wait make small parallel calls a thousand times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import pytest
import torch

HAS_GPU = torch.cuda.is_available()
NO_GPU = "needs a GPU, and torch sees none here"


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a GPU; skipped, and counted in the summary, where there is none")
    config.addinivalue_line("markers", "two_gpus: needs two GPUs")
    config.addinivalue_line("markers", "gpu_memory(gib): needs that much free memory on the GPU")

    for text in ("`torch.jit.*is deprecated", "ComplexHalf support is experimental"):  # tested on purpose
        config.addinivalue_line("filterwarnings", f"ignore:{text}")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("two_gpus") and not item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.gpu)
        if item.get_closest_marker("gpu") and not HAS_GPU:
            item.add_marker(pytest.mark.skip(reason=NO_GPU))
        elif item.get_closest_marker("two_gpus") and torch.cuda.device_count() < 2:
            item.add_marker(pytest.mark.skip(reason=f"needs two GPUs, and torch sees {torch.cuda.device_count()}"))


@pytest.fixture(autouse=True)
def enough_gpu_memory(request):
    marker = request.node.get_closest_marker("gpu_memory")
    if marker is None or not HAS_GPU:
        yield
        return
    gc.collect()
    torch.cuda.empty_cache()
    free = torch.cuda.mem_get_info()[0] / 2**30
    if free < marker.args[0]:
        pytest.skip(f"needs {marker.args[0]} GiB of GPU memory, {free:.0f} are free")
    yield
    gc.collect()
    torch.cuda.empty_cache()


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """Every test that takes this runs on the CPU, and on the GPU where there is one."""
    return torch.device(request.param, 0) if request.param == "cuda" else torch.device("cpu")


def pytest_terminal_summary(terminalreporter):
    skipped = terminalreporter.stats.get("skipped", [])
    needed = sum(1 for report in skipped if "gpu" in report.keywords and NO_GPU in str(report.longrepr))
    if needed:
        terminalreporter.write_line(f"{needed} tests needed a GPU and were skipped; `make gpu-check` runs them on a machine that has one")
