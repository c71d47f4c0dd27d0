"""CUB's device-wide algorithms as calls on tensors: make_call(name, case, inputs) returns a function of one input set.

Every peer is given what raw CUB needs least time for: temporary storage made ahead, ready-made 32-bit indices as values, an int item
count, the key bits that the data has (end_bit). Outputs are allocated in the call, as they are for the others. All calls can be captured
in a graph but segmented_sort.
"""

import ctypes
import dataclasses

import torch

from benchmarks import native, peers
from benchmarks.operations import KEY_BITS

KEY_CODES = {torch.uint8: 0, torch.int32: 1, torch.int64: 2, torch.float16: 3, torch.float32: 4, torch.int16: 5}
SOURCE_OF = {
    "radix_pairs": "radix_pairs",
    "radix_keys": "radix_keys",
    "segmented_sort": "segmented",
    "segmented_radix_sort": "segmented",
    "merge_keys": "merges",
    "merge_pairs": "merges",
    "merge_sort_pairs": "merges",
}
IMPLEMENTATION_NAMES = {"segmented_sort": "cub_segmented_sort", "segmented_radix_sort": "cub_segmented_radix_sort"}


@dataclasses.dataclass
class PeerCall:
    """A peer ready to run: `name` as it stands in the results, `call(*inputs)`, and the bytes of temporary storage it was given."""

    name: str
    call: object
    temporary_bytes: int


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def size(value):
    return ctypes.c_int64(value)


def make_call(name, case, inputs):
    """The peer `name` for inputs of the shape and dtype of `inputs`; CUB is asked for its temporary storage once, here."""
    device = inputs[0].device
    function = getattr(peers.load(SOURCE_OF[name], native.architecture_of(device)), f"peer_{name}")
    function.restype = ctypes.c_int
    build_arguments = ARGUMENTS[name](case, inputs)

    def invoke(temporary, temporary_bytes, arguments):
        stream = ctypes.c_void_p(torch.cuda.current_stream(device).cuda_stream)
        before, after = arguments
        error = function(*before, ctypes.c_void_p(temporary), ctypes.byref(temporary_bytes), *after, stream)
        if error:
            raise RuntimeError(f"CUB's {name} returned CUDA error {error}")

    needed = ctypes.c_size_t(0)
    invoke(None, needed, build_arguments(inputs)[0])
    storage = torch.empty(max(1, needed.value), dtype=torch.uint8, device=device)

    def call(*tensors):
        arguments, outputs = build_arguments(tensors)
        invoke(storage.data_ptr(), ctypes.c_size_t(needed.value), arguments)
        return outputs

    return PeerCall(IMPLEMENTATION_NAMES.get(name, "cub"), call, needed.value)


def key_code(tensor):
    return ctypes.c_int(KEY_CODES[tensor.dtype])


# Each entry maps (case, inputs) to a function of one input set, which gives ((arguments before the temporary storage, arguments after
# it), outputs).


def radix_pairs(case, inputs):
    positions = torch.arange(inputs[0].numel(), dtype=torch.int32, device=inputs[0].device)

    def arguments(tensors):
        (keys,) = tensors
        values, indices = torch.empty_like(keys), torch.empty_like(positions)
        after = [
            pointer(keys),
            pointer(values),
            pointer(positions),
            pointer(indices),
            size(keys.numel()),
            ctypes.c_int(KEY_BITS.get(case.distribution, 0)),
        ]
        return ([key_code(keys)], after), (values, indices)

    return arguments


def radix_keys(case, inputs):
    def arguments(tensors):
        (keys,) = tensors
        values = torch.empty_like(keys)
        return ([key_code(keys)], [pointer(keys), pointer(values), size(keys.numel())]), (values,)

    return arguments


def segmented(case, inputs):
    rows, length = inputs[0].shape
    positions = torch.arange(length, dtype=torch.int32, device=inputs[0].device).repeat(rows).view(rows, length)

    def arguments(tensors):
        (keys,) = tensors
        values, indices = torch.empty_like(keys), torch.empty_like(positions)
        return ([], [pointer(keys), pointer(values), pointer(positions), pointer(indices), size(rows), size(length)]), (values, indices)

    return arguments


def merge_keys(case, inputs):
    def arguments(tensors):
        a, b = tensors
        merged = torch.empty(a.numel() + b.numel(), dtype=a.dtype, device=a.device)
        return ([key_code(a)], [pointer(a), size(a.numel()), pointer(b), size(b.numel()), pointer(merged)]), (merged,)

    return arguments


def merge_pairs(case, inputs):
    def arguments(tensors):
        a_keys, a_values, b_keys, b_values = tensors
        count = a_keys.numel() + b_keys.numel()
        keys = torch.empty(count, dtype=a_keys.dtype, device=a_keys.device)
        values = torch.empty(count, dtype=a_values.dtype, device=a_keys.device)
        after = [pointer(a_keys), pointer(a_values), size(a_keys.numel()), pointer(b_keys), pointer(b_values), size(b_keys.numel())]
        return ([], [*after, pointer(keys), pointer(values)]), (keys, values)

    return arguments


def merge_sort_pairs(case, inputs):
    positions = torch.arange(inputs[0].numel(), dtype=torch.int32, device=inputs[0].device)

    def arguments(tensors):
        (keys,) = tensors
        values, indices = torch.empty_like(keys), torch.empty_like(positions)
        return ([key_code(keys)], [pointer(keys), pointer(values), pointer(positions), pointer(indices), size(keys.numel())]), (
            values,
            indices,
        )

    return arguments


ARGUMENTS = {
    "radix_pairs": radix_pairs,
    "radix_keys": radix_keys,
    "segmented_sort": segmented,
    "segmented_radix_sort": segmented,
    "merge_keys": merge_keys,
    "merge_pairs": merge_pairs,
    "merge_sort_pairs": merge_sort_pairs,
}
