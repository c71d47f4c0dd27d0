"""The contract's answer for any dtype and distribution, NaN included, by torch.sort over numbers that torch orders as the contract does."""

import torch

from benchmarks import data, harness


def sorted_by_contract(keys, dim=-1, descending=False):
    """(values, indices) of a stable sort with every NaN last; values keep their own bits. Not for complex keys. Takes time and memory of
    its own, so it is never what is timed."""
    order = torch.sort(data.generator().comparable(keys), dim=dim, descending=descending, stable=True).indices
    bits = harness.BITS[keys.element_size()]
    return keys.view(bits).gather(dim, order).view(keys.dtype), order


def equal_to_contract(outputs, keys, dim=-1, descending=False):
    """Whether a result (values and indices, or values alone) of sorting `keys` has the contract's bits."""
    values, order = sorted_by_contract(keys, dim, descending)
    bits = harness.BITS[keys.element_size()]
    outputs = harness.as_tensors(outputs)
    return harness.same_bits(outputs[0].view(bits), values.view(bits)) and all(harness.same_bits(indices, order) for indices in outputs[1:])


def torch_sorts(keys):
    """Whether torch.sort takes these keys: torch 2.11 sorts no float8 anywhere, and no uint16, uint32 or uint64 on CUDA."""
    only_on_cpu = keys.dtype in (torch.uint16, torch.uint32, torch.uint64)
    return keys.dtype not in (torch.float8_e4m3fn, torch.float8_e5m2) and not (only_on_cpu and keys.device.type == "cuda")
