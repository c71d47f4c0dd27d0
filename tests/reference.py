"""The independent answers: NumPy's stable argsort (descending by sorting the mirror image), and comparisons of bits.

Two kinds of proof. `assert_stable_sort` computes the answer with NumPy and compares every bit. `assert_is_stable_sort` needs no
second sort, so it checks
2^31 elements on the device: a stable sort is the only permutation under which each neighbour is either greater, or equal and from a
later position.
Nothing here uses torch_gpusort.
"""

import re

import numpy as np
import torch
from cases import COMPLEX, FLOATS, INFINITY_BITS, INTEGERS, SIGNED_OF_SIZE, comparable

UNSIGNED_OF_SIZE = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


# ---- bits


def bits_of(x):
    """The bit patterns as NumPy unsigned integers; complex128 gets a last axis of two words."""
    x = x.detach()
    if x.dtype in COMPLEX:
        words = torch.view_as_real(x.cpu().contiguous()).numpy().view(np.uint64)
        return words.reshape(x.shape) if x.dtype is torch.complex64 else words
    # As integers before anything is copied: a copy of bools makes every nonzero byte a one.
    return x.view(SIGNED_OF_SIZE[x.element_size()]).cpu().contiguous().numpy().view(UNSIGNED_OF_SIZE[x.element_size()])


def signed_view(x):
    """The bit patterns as a torch tensor that torch can gather and compare on any device."""
    if x.dtype is torch.complex128:
        return torch.view_as_real(x).view(torch.int64)
    if x.dtype is torch.complex64:
        return torch.view_as_real(x).view(torch.int32)
    return x.view(SIGNED_OF_SIZE[x.element_size()])


def take_bits(x, order, dim):
    """The bits of `x` in the given order along `dim`, as NumPy."""
    bits = bits_of(x)
    if bits.ndim == 0 or (x.dtype is torch.complex128 and x.dim() == 0):
        return bits
    axis = dim % x.dim()
    order = np.asarray(order)
    if x.dtype is torch.complex128:
        order = order[..., None]
    return np.take_along_axis(bits, order, axis=axis)


def gather_tensor(x, order, dim):
    """`x` in the given order along `dim`, as a tensor with the same bits (any dtype), on the same device."""
    if x.dim() == 0:
        return x.clone()
    order = torch.as_tensor(np.ascontiguousarray(order) if isinstance(order, np.ndarray) else order, device=x.device)
    if x.dtype in COMPLEX:
        return x.gather(dim, order)
    return signed_view(x).gather(dim, order).view(x.dtype)


# ---- order


def numpy_keys(x):
    """NumPy numbers that order as the contract says: bfloat16 and float8 widened exactly, True for every nonzero byte, the rest as
    they are.
    """
    if x.dtype is torch.bool:
        return (bits_of(x) != 0).astype(np.uint8)
    x = x.detach().cpu().contiguous()
    if x.dtype in FLOATS and x.dtype not in (torch.float16, torch.float32, torch.float64):
        return x.to(torch.float32).numpy()
    return x.numpy()


def stable_order_of_keys(keys, axis, descending):
    """The stable permutation. Descending is the mirror image: sort the reversed keys ascending, read the answer backwards; equal
    keys keep their order.
    """
    if keys.ndim == 0:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(keys, axis=axis, kind="stable").astype(np.int64)
    mirrored = np.argsort(np.flip(keys, axis), axis=axis, kind="stable")
    return np.ascontiguousarray(keys.shape[axis] - 1 - np.flip(mirrored, axis)).astype(np.int64)


def stable_order(x, dim=-1, descending=False):
    return stable_order_of_keys(numpy_keys(x), dim, descending)


def codes_of(x):
    """The order-preserving unsigned key of each element (not complex), as NumPy uint64: radix_sort's bit windows are windows of
    this number.

    Integers: the value less the least value of its type. Bool: 0 or 1. Floats: the place on the number line, -inf at 1, one step
    for each float, -0.0
    and +0.0 the same, every NaN one step above +inf.
    """
    bits = bits_of(x).astype(np.uint64)
    width = x.element_size() * 8
    sign = np.uint64(1) << np.uint64(width - 1)
    if x.dtype is torch.bool:
        return (bits != 0).astype(np.uint64)
    if x.dtype in INTEGERS:
        return bits ^ sign if x.dtype.is_signed else bits
    infinity = np.uint64(INFINITY_BITS[x.dtype])
    magnitude = bits & ~sign
    number = np.where(bits & sign, infinity + np.uint64(1) - np.minimum(magnitude, infinity), infinity + np.uint64(1) + magnitude)
    return np.where(magnitude > infinity, np.uint64(2) * infinity + np.uint64(2), number)


def window_order(x, begin_bit, end_bit, dim=-1, descending=False):
    """The stable permutation by bits [begin_bit, end_bit) of the codes."""
    window = np.uint64((1 << (end_bit - begin_bit)) - 1)
    shifted = codes_of(x) >> np.uint64(begin_bit) if begin_bit < 64 else np.zeros_like(codes_of(x))
    return stable_order_of_keys(shifted & window, dim, descending)


# ---- proofs


def describe(x, dim, descending):
    return f"{x.dtype} {tuple(x.shape)} strides {x.stride()} dim {dim} descending {descending} on {x.device}"


def assert_indices(x, indices, order, what, index_dtype=torch.int64):
    assert indices.shape == x.shape and indices.dtype is index_dtype and indices.device == x.device, (
        f"indices are {indices.dtype} {tuple(indices.shape)} on {indices.device}: {what}"
    )
    got = indices.detach().cpu().numpy()
    assert np.array_equal(got, order), (
        f"{np.count_nonzero(got != order)} of {got.size} indices differ, {first_difference(got, order)}: {what}"
    )


def assert_values(x, values, order, dim, what):
    assert values.shape == x.shape and values.dtype is x.dtype and values.device == x.device, (
        f"values are {values.dtype} {tuple(values.shape)} on {values.device}: {what}"
    )
    got, want = bits_of(values), take_bits(x, order, dim)
    assert np.array_equal(got, want), (
        f"{np.count_nonzero(got != want)} of {got.size} values differ in bits, {first_difference(got, want)}: {what}"
    )


def first_difference(got, want):
    at = np.argwhere(np.atleast_1d(got != want))
    if not len(at):
        return "no position"
    place = tuple(at[0])
    return f"first at {tuple(int(p) for p in place)}: got {np.atleast_1d(got)[place]}, want {np.atleast_1d(want)[place]}"


def assert_stable_sort(x, result, dim=-1, descending=False, index_dtype=torch.int64, order=None):
    """`result` is (values, indices) of a stable sort of `x`, bit for bit. `order` may bring the permutation that was computed before."""
    values, indices = result
    what = describe(x, dim, descending)
    order = stable_order(x, dim, descending) if order is None else order
    assert_indices(x, indices, order, what, index_dtype)
    assert_values(x, values, order, dim, what)


def assert_is_stable_sort(x, values, indices, dim=-1, descending=False):
    """The same proof without sorting, on the device of `x`, by the three properties that only the stable sort has. Not for complex."""
    what = describe(x, dim, descending)
    x, indices = x.movedim(dim, -1), indices.movedim(dim, -1).long()
    n = x.shape[-1]
    if n == 0:
        return
    assert int(indices.min()) >= 0 and int(indices.max()) < n, f"indices outside [0, {n}): {what}"
    seen = torch.zeros(x.shape, dtype=torch.bool, device=x.device).scatter_(-1, indices, True)
    assert bool(seen.all()), f"indices are not a permutation: {what}"
    del seen
    if values is not None:
        values = values.movedim(dim, -1)
        assert torch.equal(signed_view(values), signed_view(x).gather(-1, indices)), f"values are not the input's bits: {what}"
    keys = comparable(x).gather(-1, indices)
    before, after = keys[..., :-1], keys[..., 1:]
    if descending:
        before, after = after, before
    rises, equal = before < after, before == after
    if keys.is_floating_point():
        rises |= after.isnan() & ~before.isnan()
        equal |= after.isnan() & before.isnan()
    assert bool((rises | (equal & (indices[..., :-1] < indices[..., 1:]))).all()), f"neighbours out of order, or equal ones swapped: {what}"


def cat_bits_last(a, b):
    """cat(a, b) along the last dim with the bits kept (any dtype)."""
    if a.dtype in COMPLEX:
        return torch.cat([a, b], -1)
    return torch.cat([signed_view(a), signed_view(b)], -1).view(a.dtype)


def co_ranks(a, b, descending=False):
    """For k = 0 .. m + n: how many of the first k outputs of the merge of the 1-D a and b come from a."""
    order = stable_order(cat_bits_last(a, b), -1, descending)
    return np.concatenate([[0], np.cumsum(order < a.shape[-1])]).astype(np.int64)


# ---- the names of options


def allowed_options(call, name):
    """The values that an option may have, read from the error of a wrong one: "<name> is <value>; allowed are <values>"
    (or: takes <values>)."""
    try:
        call()
    except ValueError as error:
        text = str(error)
        listing = re.search(r"\b(?:allowed[\w ]* are|takes)\b(.*)", text)
        assert name in text and listing, f"the error of a wrong {name} does not list the right ones: {text}"
        listed = re.findall(r"'(\w+)'|\b(\d+)\b", listing[1])
        return [word or int(number) for word, number in listed]
    raise AssertionError(f"a wrong {name} was accepted")


# ---- torch's own layout rule


def strides_of_torch_sort(x, dim=-1):
    """The strides that torch.sort gives values and indices for an input laid out like `x` (asked of torch)."""
    stand_in = torch.empty_strided(x.shape, x.stride(), dtype=torch.float32).zero_()
    values, indices = torch.sort(stand_in, dim=dim, stable=True)
    return values.stride(), indices.stride()
