"""What a sort is going to do on a GPU, in the planner's own words: which algorithm, in which passes, with how much memory and traffic.

The plan is a function of shape, strides, dtype, options and a few numbers of the device, so no GPU is needed to ask for it.
"""

from __future__ import annotations

import json
import math
import struct
from typing import NamedTuple

import torch
from torch import Tensor

from ._errors import check_bool, check_dense, check_dim, check_tensor, dim_of_name, raise_as_python_error
from ._fake import check_dtype

_SHARE_OF_PEAK = 0.88  # what a copy reaches of the memory's rate: 4.3 of 4.9 TB/s on an H200


class DeviceTraits(NamedTuple):
    """What the planner knows of a GPU, and the rate at which it copies (bytes read and bytes written, per second)."""

    sm_count: int
    shared_bytes_per_block: int
    shared_bytes_per_sm: int
    l2_bytes: int
    compute_major: int
    compute_minor: int
    copy_bytes_per_second: float

    @classmethod
    def of(cls, device: torch.device | int | str) -> DeviceTraits:
        """Those of a GPU of this machine."""
        found = torch.cuda.get_device_properties(device)
        peak = 2 * found.memory_clock_rate * 1e3 * found.memory_bus_width / 8  # kHz, bits
        return cls(
            found.multi_processor_count,
            found.shared_memory_per_block_optin,
            found.shared_memory_per_multiprocessor,
            found.L2_cache_size,
            found.major,
            found.minor,
            peak * _SHARE_OF_PEAK,
        )


# The copy rate of the H200 is measured; the others are that share of the memory's peak rate.
DEVICES = {
    "h200": DeviceTraits(132, 232448, 233472, 60 << 20, 9, 0, 4.3e12),
    "h100": DeviceTraits(132, 232448, 233472, 50 << 20, 9, 0, 3.35e12 * _SHARE_OF_PEAK),
    "a100": DeviceTraits(108, 166912, 167936, 40 << 20, 8, 0, 2.04e12 * _SHARE_OF_PEAK),
}


class Step(NamedTuple):
    """One kernel or copy. 0 blocks, threads or tile: not told by the plan."""

    name: str
    blocks: int
    threads: int  # to a block
    tile: int  # elements that a block takes at a time
    shared_bytes: int  # of a block
    bytes_read: int
    bytes_written: int


class Explanation(NamedTuple):
    """What explain returns. As text it is a table."""

    algorithm: str
    note: str  # what is decided on the device
    steps: tuple[Step, ...]
    workspace_bytes: int  # beyond the results
    bytes_moved: int  # by all steps, though the device may skip some, and take others where the note says so
    floor_us: float  # the bytes moved, at the rate at which the device copies
    least_us: float  # the input read once and the results written once, at that rate
    device: DeviceTraits

    def __str__(self) -> str:
        lines = [f"{self.algorithm}, {self.workspace_bytes:,} bytes beyond the results"]
        if self.note:
            lines.append(self.note)
        width = max((len(step.name) for step in self.steps), default=4)
        lines.append(f"{'step':{width}} {'blocks':>10} {'threads':>7} {'tile':>8} {'shared':>8} {'bytes read':>15} {'bytes written':>15}")
        for step in self.steps:
            numbers = zip((10, 7, 8, 8), (step.blocks, step.threads, step.tile, step.shared_bytes))
            cells = " ".join(f"{number or '-':>{size}}" for size, number in numbers)
            lines.append(f"{step.name:{width}} {cells} {step.bytes_read:>15,} {step.bytes_written:>15,}")
        rate = self.device.copy_bytes_per_second
        lines.append(f"{self.bytes_moved:,} bytes moved: {self.floor_us:,.1f} us at the copy rate of {rate / 1e12:.2f} TB/s")
        lines.append(f"input read once and results written once: {self.least_us:,.1f} us")
        return "\n".join(lines)


def _traits_for(input: Tensor, device_traits: DeviceTraits | str | None) -> DeviceTraits:
    if device_traits is None:
        return DeviceTraits.of(input.device) if input.device.type == "cuda" else DEVICES["h200"]
    if isinstance(device_traits, str):
        if device_traits not in DEVICES:
            raise ValueError(f"device_traits is {device_traits!r}; allowed are {', '.join(map(repr, DEVICES))} and DeviceTraits")
        return DEVICES[device_traits]
    if not isinstance(device_traits, DeviceTraits):
        raise TypeError(f"device_traits must be a name, a DeviceTraits or None, not {type(device_traits).__name__}")
    for name, value in zip(DeviceTraits._fields, device_traits):
        is_rate = name == "copy_bytes_per_second"
        if not isinstance(value, (int, float) if is_rate else int):
            raise TypeError(f"device_traits.{name} must be {'a number' if is_rate else 'an int'}, not {type(value).__name__} {value!r}")
        if is_rate and not 0 < value < math.inf:
            raise ValueError(f"device_traits.{name} is {value}; it must be above 0 and finite")
    return device_traits


def explain(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    index_dtype: torch.dtype | None = None,
    algorithm: str = "auto",
    kernel: str = "auto",
    digit_bits: int | None = None,
    begin_bit: int = 0,
    end_bit: int | None = None,
    values: bool = True,
    indices: bool = True,
    device_traits: DeviceTraits | str | None = None,
) -> Explanation:
    """What sorting this tensor is going to do on a GPU: the plan that :func:`sort` itself makes, without running it.

    Args:
        input: a tensor on any device. Only its shape, strides and dtype are looked at, so one on the meta device will do.
        dim, descending, index_dtype, algorithm: as :func:`sort`.
        kernel, digit_bits, begin_bit, end_bit: as :func:`radix_sort`; for algorithm="radix" only.
        values, indices: which results are wanted: both for :func:`sort`, values for :func:`sort_keys`, indices for :func:`argsort`.
        device_traits: the GPU to plan for: "h200", "h100", "a100" or a DeviceTraits. By default the one that input is on; an H200 if it is
            on none.

    Returns:
        The named tuple (algorithm, note, steps, workspace_bytes, bytes_moved, floor_us, least_us, device); printed, it is a table. Bytes
        are those of keys, indices and records in all steps. What is only found on the device changes them. Constant digits, sorted input
        and 64-bit keys that few digits tell apart need less; rows that their samples do not suit, buckets above the capacity and ties to
        be mended take more. floor_us is the time of those bytes at the device's copy rate: the steps are not faster where all of them are
        taken and the L2 cache does not hold the data. For a call that needs less it is no bound.

    Errors: those of :func:`sort` and :func:`radix_sort`, and ValueError for more than 2**48 elements.

    Example::

        >>> import torch, torch_gpusort
        >>> plan = torch_gpusort.explain(torch.empty(1 << 26, device="meta"), algorithm="radix")
        >>> len(plan.steps), plan.bytes_moved // (1 << 26), round(plan.floor_us)
        (5, 68, 1061)
    """
    check_tensor("input", input)
    check_dense("input", input)
    check_dtype("input", input)
    check_dim(dim)
    for name, value in (("descending", descending), ("values", values), ("indices", indices)):
        check_bool(name, value)
    if isinstance(dim, str) and input.has_names():
        dim = dim_of_name(dim, input.names)
    traits = _traits_for(input, device_traits)
    try:
        words = torch.ops.gpusort._explain_sort(
            input.shape, input.stride(), input.dtype, dim, descending, index_dtype, algorithm, kernel, digit_bits, begin_bit, end_bit,
            values, indices, traits[:6],
        )  # fmt: skip
    except RuntimeError as error:
        raise_as_python_error(error)
    found = json.loads(struct.pack(f"{len(words)}q", *words).rstrip(b"\0"))
    results = (input.element_size() if values else 0) + ((index_dtype or torch.int64).itemsize if indices else 0)
    return Explanation(
        found["algorithm"],
        found["note"],
        tuple(Step(**step) for step in found["steps"]),
        found["workspace_bytes"],
        found["bytes_moved"],
        found["bytes_moved"] / traits.copy_bytes_per_second * 1e6,
        input.numel() * (input.element_size() + results) / traits.copy_bytes_per_second * 1e6,
        traits,
    )
