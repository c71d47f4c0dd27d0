"""The two commands: `python -m torch_gpusort demo` and `python -m torch_gpusort info`."""

from __future__ import annotations

import argparse
import platform
import sys

import torch

import torch_gpusort

from . import _library

try:
    from rich.console import Console
    from rich.table import Table
except ImportError:
    sys.exit("the commands print tables with rich: pip install rich")


def make_console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=120)


def _build_lines() -> dict[str, str]:
    text = torch.ops.gpusort._build_info()
    if any(path.name == "_C_cuda.so" for path in _library.loaded):
        text += torch.ops.gpusort._cuda_build_info()
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def info() -> int:
    """Versions, libraries loaded, devices, what the libraries were built with and for."""
    table = Table("", "", title="torch_gpusort", show_header=False)
    table.add_row("torch_gpusort", torch_gpusort.__version__)
    table.add_row("torch", f"{torch.__version__}, CUDA {torch.version.cuda or 'none'}")
    table.add_row("Python", platform.python_version())
    for path in _library.loaded:
        table.add_row("library", str(path))
    if _library.without_cuda:
        table.add_row("CUDA kernels", f"none: {_library.without_cuda}")
    for key, value in _build_lines().items():
        table.add_row(key.replace("_", " "), value)
    table.add_row("CPU threads", str(torch.get_num_threads()))
    for device in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        properties = torch.cuda.get_device_properties(device)
        details = f"sm_{properties.major}{properties.minor}, {properties.multi_processor_count} SMs, {properties.total_memory >> 20} MiB"
        table.add_row(f"cuda:{device}", f"{properties.name}, {details}")
    make_console().print(table)
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m torch_gpusort", description=torch_gpusort.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    demo_command = commands.add_parser("demo", help="preprocess the text of Python's own library and compare every result with torch")
    demo_command.add_argument("--device", help="cpu or cuda; by default the GPU if torch and this build have one")
    commands.add_parser("info", help="versions, libraries, devices and architectures")
    chosen = parser.parse_args(arguments)
    if chosen.command == "info":
        return info()
    from .demo import demo

    return demo(chosen.device, make_console())
