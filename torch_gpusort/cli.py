"""The commands: `python -m torch_gpusort demo`, `info`, and `explain --shape 4096,1000 --dtype float32`."""

from __future__ import annotations

import argparse
import math
import platform
import sys

import torch

import torch_gpusort

from . import _library
from ._explain import DEVICES, DeviceTraits

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


def _shape(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(size) for size in text.split(",")) if text.strip() else ()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; give sizes with commas between them, as 4096,1000") from None
    if any(size < 0 for size in sizes) or math.prod(sizes) > 2**48:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; sizes must be 0 or more, and no more than 2**48 elements in all")
    return sizes


def _dtype(text: str) -> torch.dtype:
    dtype = getattr(torch, text.removeprefix("torch."), None)
    if not isinstance(dtype, torch.dtype):
        raise argparse.ArgumentTypeError(f"{text!r} is no dtype of torch; allowed are float32, int64, bool, ...")
    return dtype


def _device(text: str) -> torch.device:
    try:
        device = torch.device(text)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise argparse.ArgumentTypeError(f"{text!r} is no device for this; allowed are cpu, cuda and cuda:0, cuda:1, ...")
    if device.type == "cuda":
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if _library.without_cuda:
            raise argparse.ArgumentTypeError(f"{text!r} needs CUDA kernels, and there are none: {_library.without_cuda}")
        if (device.index or 0) >= gpus:
            raise argparse.ArgumentTypeError(f"{text!r} is not there: torch sees {gpus} GPUs")
    return device


def _add_explain(commands) -> None:
    command = commands.add_parser("explain", help="what a sort is going to do on a GPU: algorithm, passes, memory, traffic, time floor")
    command.add_argument("--shape", type=_shape, required=True, help="sizes with commas between them: 4096,1000")
    command.add_argument("--dtype", type=_dtype, default=torch.float32, help="as in torch: float32 (the default), int64, bool, ...")
    command.add_argument("--dim", type=int, default=-1)
    command.add_argument("--descending", action="store_true")
    command.add_argument("--index-dtype", type=_dtype)
    command.add_argument("--algorithm", default="auto", help="auto, radix, merge, bitonic, sample, rows, grid, buckets")
    command.add_argument("--kernel", default="auto", help="of algorithm radix: onesweep, scan_scatter, block")
    command.add_argument("--digit-bits", type=int, help="of algorithm radix: bits per pass")
    command.add_argument("--begin-bit", type=int, default=0, help="of algorithm radix: the lowest bit to sort by")
    command.add_argument("--end-bit", type=int, help="of algorithm radix: the bit after the highest")
    wanted = command.add_mutually_exclusive_group()
    wanted.add_argument("--keys-only", action="store_true", help="as sort_keys: without indices")
    wanted.add_argument("--indices-only", action="store_true", help="as argsort: without values")
    command.add_argument("--device-traits", help=f"{', '.join(DEVICES)}; by default the GPU of this machine, h200 if it has none")


def explain(chosen: argparse.Namespace) -> int:
    here = torch.cuda.is_available() and chosen.device_traits is None
    try:
        plan = torch_gpusort.explain(
            torch.empty(chosen.shape, dtype=chosen.dtype, device="meta"),
            chosen.dim,
            chosen.descending,
            index_dtype=chosen.index_dtype,
            algorithm=chosen.algorithm,
            kernel=chosen.kernel,
            digit_bits=chosen.digit_bits,
            begin_bit=chosen.begin_bit,
            end_bit=chosen.end_bit,
            values=not chosen.indices_only,
            indices=not chosen.keys_only,
            device_traits=DeviceTraits.of(0) if here else chosen.device_traits,
        )
    except (IndexError, TypeError, ValueError, RuntimeError) as error:
        print(f"python -m torch_gpusort explain: {error}", file=sys.stderr)
        return 2
    print(plan)
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m torch_gpusort", description=torch_gpusort.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    demo_command = commands.add_parser("demo", help="preprocess the text of Python's own library and compare every result with torch")
    demo_command.add_argument("--device", type=_device, help="cpu or cuda; by default the GPU if torch and this build have one")
    commands.add_parser("info", help="versions, libraries, devices and architectures")
    _add_explain(commands)
    chosen = parser.parse_args(arguments)
    if chosen.command == "info":
        return info()
    if chosen.command == "explain":
        return explain(chosen)
    from .demo import demo

    return demo(chosen.device, make_console())
