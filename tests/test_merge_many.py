"""merge_many: the stable sort of the runs put together, when each is sorted; some permutation of them when not."""

import numpy as np
import pytest
import torch
from cases import COMPLEX, DTYPES, FLOATS, distributions_of, make, name_of, sorted_values
from reference import assert_is_stable_sort, assert_stable_sort, bits_of, signed_view, stable_order, take_bits
from torch.autograd import gradcheck, gradgradcheck

import torch_gpusort as gs

BOTH = (False, True)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
# One run, empty runs at the ends and between, one long among short ones, as many as one stage merges (32) and more, single elements.
LENGTHS = {
    "one": [700],
    "two": [300, 201],
    "empty ones": [0, 5, 0, 0, 40, 0],
    "nothing": [0, 0, 0],
    "long and short": [9000, 1, 2, 0, 3, 1],
    "31": [13] * 31,
    "32": list(range(32)),
    "33": list(range(33, 0, -1)),
    "singles": [1] * 300,
    "1500": [i % 7 for i in range(1500)],
    "equal and long": [6000] * 7,
}


def two_or_more(lengths, dtype, device, name="zipf", descending=False, seed=0):
    """Sorted runs in one tensor, and their offsets."""
    parts = [sorted_values(make(name, n, dtype, device, seed=(seed, i)), descending) for i, n in enumerate(lengths)]
    runs = torch.cat(parts) if dtype in COMPLEX else torch.cat([signed_view(part) for part in parts]).view(dtype)
    return runs, torch.tensor(np.cumsum([0, *lengths]), device=device)


def check(runs, offsets, descending=False):
    order = stable_order(runs, -1, descending)
    result = gs.merge_many(runs, offsets, descending=descending, return_indices=True)
    assert_stable_sort(runs, result, -1, descending, order=order)
    values = gs.merge_many(runs, offsets, descending=descending)
    assert values.shape == runs.shape and values.dtype is runs.dtype and values.device == runs.device
    assert np.array_equal(bits_of(values), take_bits(runs, order, -1)), "keys only"
    return result


@every_dtype
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_every_dtype_and_shape(device, dtype, lengths):
    for name in ("random_bits", "zipf", "two_values"):
        for descending in BOTH:
            check(*two_or_more(lengths, dtype, device, name, descending), descending)


@every_dtype
def test_every_distribution(device, dtype):
    for name in distributions_of(dtype):
        for descending in BOTH:
            check(*two_or_more([500, 0, 1201, 33, 900, 7], dtype, device, name, descending), descending)


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_nan_and_zeros(device, dtype):
    for names in (("nans", "all_nan", "uniform"), ("signed_zeros", "all_nan", "signed_zeros"), ("infinities", "nans", "denormals")):
        for descending in BOTH:
            parts = [sorted_values(make(name, 400 + i, dtype, device), descending) for i, name in enumerate(names)]
            runs = torch.cat([signed_view(part) for part in parts]).view(dtype)
            check(runs, torch.tensor([0, 400, 801, 1203], device=device), descending)


def test_runs_that_do_not_interleave(device):
    """In order, in reverse order, all equal: what an unlucky choice of splits would be slow or wrong on."""
    for dtype in (torch.uint8, torch.int64):
        x = make("sorted", 40_000, dtype, device)
        for count in (3, 40, 800, 2000):
            offsets = torch.arange(count + 1, device=device) * (40_000 // count)
            offsets[-1] = 40_000
            check(x, offsets)
            check(torch.cat(list(x.tensor_split(offsets[1:-1].cpu()))[::-1]), 40_000 - offsets.flip(0))
            check(make("all_equal", 40_000, dtype, device), offsets, True)


def test_a_sequence_of_tensors(device):
    for dtype in (torch.bool, torch.uint16, torch.bfloat16, torch.float8_e5m2, torch.float32, torch.complex64):
        for lengths in ([5], [0, 0], [30, 0, 500], [3] * 70):
            runs, offsets = two_or_more(lengths, dtype, device, "random_bits")
            parts = [runs[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist())]
            for sequence in (parts, tuple(parts)):
                assert_stable_sort(runs, gs.merge_many(sequence, return_indices=True))
            assert np.array_equal(bits_of(gs.merge_many(parts)), take_bits(runs, stable_order(runs), -1))


def test_layouts_and_offsets_of_other_kinds(device):
    runs, offsets = two_or_more([400, 300, 77], torch.float32, device)
    check(torch.stack([runs, runs], 1)[:, 1], offsets)
    check(runs, torch.stack([offsets, offsets], 1)[:, 0])
    check(torch.cat([runs[:1], runs])[1:], offsets)
    check(runs, offsets.int())
    check(runs, offsets.cpu())
    check(runs[:1].expand(50), torch.tensor([0, 20, 50], device=device))
    check(runs[:0], offsets[:1])
    result = check(runs, offsets)
    assert result.values is result[0] and result.indices is result[1] and result.indices.dtype is torch.int64
    one = gs.merge_many(runs[:400], offsets[:2])
    assert torch.equal(one, runs[:400]) and one.data_ptr() != runs.data_ptr()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_cpu_threads(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for dtype in (torch.uint8, torch.float64, torch.complex128):
            for lengths in ([50_000, 3, 70_000, 0, 20_011], [3000] * 40, [60] * 2000):
                check(*two_or_more(lengths, dtype, torch.device("cpu"), "random_bits"))
    finally:
        torch.set_num_threads(before)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32, torch.int64], ids=name_of)
def test_millions(dtype):
    for lengths in ([1_000_003, 2_000_001, 5], [50_000] * 60, [999] * 3000, [3_000_000, *[1] * 2000]):
        for descending in BOTH:
            runs, offsets = two_or_more(lengths, dtype, "cuda", "random_bits", descending)
            result = gs.merge_many(runs, offsets, descending=descending, return_indices=True)
            assert_is_stable_sort(runs, *result, descending=descending)
            values = gs.merge_many(runs, offsets, descending=descending)
            assert torch.equal(signed_view(values), signed_view(result.values))


@every_dtype
def test_unsorted_runs_give_a_permutation(device, dtype):
    for lengths in ([1, 1], [10, 0, 7], [9000, 30_000, 11_000], [500] * 90):
        for name in ("random_bits", "organ_pipe"):
            runs = make(name, sum(lengths), dtype, device)
            offsets = torch.tensor(np.cumsum([0, *lengths]), device=device)
            values, indices = gs.merge_many(runs, offsets, return_indices=True)
            assert torch.equal(indices.sort().values.cpu(), torch.arange(sum(lengths))), "not a permutation"
            assert np.array_equal(bits_of(values), take_bits(runs, indices.cpu().numpy(), -1))


WRONG_OFFSETS = {
    "falling": [0, 6, 4, 9],
    "past the end": [0, 4, 12],
    "short of the end": [0, 4, 8],
    "negative": [-1, 4, 9],
    "late": [1, 4, 9],
    "huge": [0, 2**62, 9],
}


@pytest.mark.parametrize("wrong", WRONG_OFFSETS.values(), ids=WRONG_OFFSETS)
def test_wrong_offsets(device, wrong):
    """In host memory they are refused. On the GPU they are taken as some that rise, and nothing else is touched."""
    whole = make("sorted", 64, torch.float32, device)
    runs, others = whole[:9], whole[9:].clone()
    with pytest.raises(ValueError, match=r"offsets.*from 0 to 9"):
        gs.merge_many(runs, torch.tensor(wrong))
    if device.type == "cuda":
        values, indices = gs.merge_many(runs, torch.tensor(wrong, device=device), return_indices=True)
        assert torch.equal(indices.sort().values.cpu(), torch.arange(9)) and torch.equal(values, runs[indices])
    assert torch.equal(whole[9:], others)


def test_errors(device):
    runs, offsets = two_or_more([4, 5], torch.float32, device)
    for error, match, call in (
        (ValueError, r"offsets is None", lambda: gs.merge_many(runs)),
        (ValueError, r"offsets is given", lambda: gs.merge_many([runs], offsets)),
        (ValueError, r"runs is empty", lambda: gs.merge_many([])),
        (ValueError, r"runs has shape \[1, 9\]", lambda: gs.merge_many(runs[None], offsets)),
        (ValueError, r"runs\[1\] has shape \[1, 9\]", lambda: gs.merge_many([runs, runs[None]])),
        (ValueError, r"offsets has shape \[1, 3\]", lambda: gs.merge_many(runs, offsets[None])),
        (ValueError, r"offsets has shape \[0\]", lambda: gs.merge_many(runs, offsets[:0])),
        (ValueError, r"offsets has shape \[1\]", lambda: gs.merge_many(runs, offsets[:1])),
        (TypeError, r"offsets has dtype torch.float32", lambda: gs.merge_many(runs, offsets.float())),
        (TypeError, r"offsets must be a Tensor", lambda: gs.merge_many(runs, [0, 9])),
        (TypeError, r"runs\[1\] has dtype torch.float64", lambda: gs.merge_many([runs, runs.double()])),
        (TypeError, r"runs\[1\] must be a Tensor", lambda: gs.merge_many([runs, [1.0]])),
        (TypeError, r"runs must be a sequence", lambda: gs.merge_many(5)),
        (TypeError, r"runs has dtype torch.complex32", lambda: gs.merge_many(runs.view(torch.complex32), offsets)),
    ):
        with pytest.raises(error, match=match):
            call()


@pytest.mark.gpu
def test_mixed_devices():
    runs, offsets = two_or_more([4, 5], torch.float32, "cuda")
    with pytest.raises(RuntimeError, match="device"):
        gs.merge_many([runs, runs.cpu()])
    with pytest.raises(RuntimeError, match="device"):
        torch.ops.gpusort.merge_many(runs, offsets.cpu())


@pytest.mark.parametrize("raw", [False, True])
def test_gradients(device, raw):
    x = torch.sort((torch.randperm(21, generator=torch.Generator().manual_seed(2)).double() / 3).view(3, 7)).values.to(device)
    runs, offsets = x.flatten().requires_grad_(), torch.arange(4, device=device) * 7
    function = torch.ops.gpusort.merge_many if raw else gs.merge_many
    assert gradcheck(lambda t: function(t, offsets), (runs,), check_forward_ad=True)
    assert gradgradcheck(lambda t: function(t, offsets) ** 2, (runs,))
    parts = [part.detach().clone().requires_grad_() for part in x]
    assert gradcheck(lambda *t: gs.merge_many(t, return_indices=True).values, parts)
    values, indices = torch.ops.gpusort.merge_many_with_indices(runs, offsets)
    assert values.requires_grad and not indices.requires_grad


def test_meta_runs_take_offsets_from_the_cpu():
    runs = torch.empty(10, device="meta")
    values, indices = gs.merge_many(runs, torch.tensor([0, 4, 10]), return_indices=True)
    assert (values.shape, values.device.type, indices.dtype) == (runs.shape, "meta", torch.int64)
    with pytest.raises(ValueError, match="offsets goes from 0 to 11; it must rise from 0 to 10"):
        gs.merge_many(runs, torch.tensor([0, 4, 11]))


def test_vmap(device):
    x = torch.sort(make("zipf", (5, 3, 7), torch.float32, device)).values.flatten(1)
    offsets = torch.arange(4, device=device) * 7
    for mapped, in_dims in (((x, offsets), (0, None)), ((x[0], offsets.expand(5, 4)), (None, 0)), ((x.t(), offsets.expand(5, 4)), (1, 0))):
        got = torch.vmap(lambda t, o: gs.merge_many(t, o), in_dims=in_dims)(*mapped)
        pair = torch.vmap(lambda t, o: tuple(gs.merge_many(t, o, return_indices=True)), in_dims=in_dims)(*mapped)
        for i in range(5):
            want = gs.merge_many(x[0] if in_dims[0] is None else x[i], offsets, return_indices=True)
            assert torch.equal(got[i], want.values) and torch.equal(pair[0][i], want.values) and torch.equal(pair[1][i], want.indices)
    assert torch.vmap(lambda t: gs.merge_many(t, offsets))(x[:0]).shape == (0, 21)
