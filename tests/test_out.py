"""sort(..., out=(values, indices)), as torch.sort has it: resized when empty, strided, overlapping the input, refused when the
dtype is wrong.
"""

import warnings

import numpy as np
import pytest
import torch
from cases import DTYPES, make, name_of
from reference import assert_stable_sort, bits_of, stable_order, take_bits

import torch_gpusort as gs


def empty_pair(dtype, device):
    return torch.empty(0, dtype=dtype, device=device), torch.empty(0, dtype=torch.int64, device=device)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_empty_targets_grow(device, dtype):
    for shape in ((0,), (1,), (700,), (5, 60), (60, 5, 3), ()):
        x = make("zipf", shape, dtype, device)
        for descending in (False, True):
            values, indices = empty_pair(dtype, device)
            result = gs.sort(x, 0, descending, out=(values, indices))
            assert result[0] is values and result[1] is indices and result.values is values and result.indices is indices
            assert_stable_sort(x, (values, indices), 0, descending)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_targets_of_the_right_shape_are_written_in_place(device, dtype):
    x = make("zipf", (30, 40), dtype, device)
    values, indices = torch.zeros(30, 40, dtype=dtype, device=device), torch.full((30, 40), -1, device=device)
    where = values.data_ptr(), indices.data_ptr()
    gs.sort(x, 0, True, out=(values, indices))
    assert (values.data_ptr(), indices.data_ptr()) == where
    assert_stable_sort(x, (values, indices), 0, True)


def test_bools_keep_their_own_bits(device):
    x = make("random_bits", (40, 50), torch.bool, device)
    assert bits_of(x).max() > 1
    buffer = torch.zeros(50, 80, dtype=torch.bool, device=device)
    for values in (
        torch.empty(0, dtype=torch.bool, device=device),
        torch.zeros(40, 50, dtype=torch.bool, device=device),
        buffer[:, ::2].t(),
    ):
        indices = torch.empty(0, dtype=torch.int64, device=device)
        gs.sort(x, out=(values, indices))
        assert np.array_equal(bits_of(values), take_bits(x, stable_order(x, 1), 1))
    assert not bits_of(buffer[:, 1::2]).any()


def test_strided_targets_leave_the_gaps_alone(device):
    x = make("uniform", 60, torch.float32, device)
    value_buffer, index_buffer = torch.full((120,), -7.0, device=device), torch.full((180,), -7, device=device)
    gs.sort(x, out=(value_buffer[::2], index_buffer[::3]))
    order = torch.from_numpy(stable_order(x)).to(device)
    assert torch.equal(value_buffer[::2], x[order]) and bool(value_buffer[1::2].eq(-7).all())
    assert torch.equal(index_buffer[::3], order) and bool(index_buffer[1::3].eq(-7).all()) and bool(index_buffer[2::3].eq(-7).all())
    y = make("zipf", (20, 30), torch.int64, device)
    values, indices = torch.zeros(30, 20, dtype=torch.int64, device=device).t(), torch.zeros(30, 20, dtype=torch.int64, device=device).t()
    gs.sort(y, out=(values, indices))
    assert values.stride() == (1, 20) and indices.stride() == (1, 20)
    assert_stable_sort(y, (values, indices))


@pytest.mark.parametrize("n", [1, 6, 300, 5000, 100_000])
def test_the_target_may_be_the_input(device, n):
    for dtype in (torch.int64, torch.float32, torch.uint8):
        x = make("random_bits", n, dtype, device)
        order, want = stable_order(x), take_bits(x, stable_order(x), -1)
        indices = torch.empty(n, dtype=torch.int64, device=device)
        gs.sort(x, out=(x, indices))
        assert np.array_equal(bits_of(x), want) and np.array_equal(indices.cpu().numpy(), order)


def test_the_target_may_overlap_the_input(device):
    storage = make("uniform", 1200, torch.float32, device)
    x = storage[:1000]
    order, want = stable_order(x), take_bits(x, stable_order(x), -1)
    indices = torch.empty(1000, dtype=torch.int64, device=device)
    gs.sort(x, out=(storage[200:], indices))
    assert np.array_equal(bits_of(storage[200:]), want) and np.array_equal(indices.cpu().numpy(), order)
    y = make("uniform", 500, torch.float64, device)
    order, want = stable_order(y), take_bits(y, stable_order(y), -1)
    indices, values = y.view(torch.int64), torch.empty(500, dtype=torch.float64, device=device)
    gs.sort(y, out=(values, indices))
    assert np.array_equal(bits_of(values), want) and np.array_equal(indices.cpu().numpy(), order)


def test_a_target_of_another_shape_is_resized_with_torchs_warning(device):
    x = make("uniform", (4, 50), torch.float32, device)
    values, indices = torch.zeros(3, device=device), torch.zeros(3, dtype=torch.int64, device=device)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gs.sort(x, out=(values, indices))
    assert any("resized" in str(w.message) for w in caught)
    assert_stable_sort(x, (values, indices))


def test_resized_targets_are_laid_out_as_torch_does(device):
    x = make("uniform", (7, 6, 5), torch.float32, device)
    for input in (x, x.permute(1, 2, 0), x.transpose(0, 2), x[:, :0].transpose(0, 1), x[0, 0, 0], x[:1].expand(7, 6, 5), x[:, 2]):
        for dim in range(-1, input.dim()):
            for size in (0, 1000):
                pairs = [(torch.empty(size, device=device), torch.empty(size, dtype=torch.int64, device=device)) for _ in range(2)]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    gs.sort(input, dim, out=pairs[0])
                    torch.sort(input, dim=dim, stable=True, out=pairs[1])
                for ours, torchs in zip(*pairs):
                    assert ours.shape == torchs.shape and ours.stride() == torchs.stride() and torch.equal(ours, torchs)


def test_int32_indices_go_to_an_int32_target(device):
    x = make("zipf", (3, 70), torch.int64, device)
    values, indices = torch.empty(0, dtype=torch.int64, device=device), torch.empty(0, dtype=torch.int32, device=device)
    gs.sort(x, index_dtype=torch.int32, out=(values, indices))
    assert_stable_sort(x, (values, indices), index_dtype=torch.int32)


def test_wrong_targets_are_refused_and_not_written(device):
    x = make("uniform", 20, torch.float32, device)
    good_values, good_indices = torch.full((20,), 3.0, device=device), torch.full((20,), 3, device=device)
    wrong = [
        (torch.zeros(20, dtype=torch.float64, device=device), good_indices),
        (good_values, torch.zeros(20, dtype=torch.int32, device=device)),
        (good_values, torch.zeros(20, device=device)),
        (good_values,),
        good_values,
        (good_values, good_indices, good_indices),
        (good_values, None),
    ]
    for out in wrong:
        with pytest.raises((TypeError, RuntimeError, ValueError)):
            gs.sort(x, out=out)
    if device.type == "cuda":
        with pytest.raises(RuntimeError, match="device"):
            gs.sort(x, out=(good_values.cpu(), good_indices))
    assert bool(good_values.eq(3).all()) and bool(good_indices.eq(3).all())


def test_out_and_gradients_do_not_mix(device):
    """torch.sort refuses out= when an argument requires a gradient; so does this."""
    x = make("uniform", 20, torch.float64, device).requires_grad_()
    with pytest.raises(RuntimeError, match=r"(?i)out.*grad|grad.*out|differentiation"):
        gs.sort(x, out=empty_pair(torch.float64, device))
    with torch.no_grad():
        values, indices = gs.sort(x, out=empty_pair(torch.float64, device))
    assert_stable_sort(x.detach(), (values, indices))
