"""lexsort and sort_by_key: NumPy's lexsort as the reference, for keys of every dtype together."""

import numpy as np
import pytest
import torch
from cases import COMPLEX, DTYPES, distributions_of, make, name_of
from reference import assert_is_stable_sort, bits_of, numpy_keys, stable_order, stable_order_of_keys, take_bits
from torch.autograd import gradcheck

import torch_gpusort as gs

BOTH = (False, True)


def expected(keys, axis=-1, descending=False):
    """Stable sorts from the least significant key on."""
    directions = [descending] * len(keys) if isinstance(descending, bool) else descending
    order = stable_order(keys[0], axis, directions[0])
    for key, down in zip(keys[1:], directions[1:]):
        taken = np.take_along_axis(numpy_keys(key), order, axis) if key.dim() else numpy_keys(key)
        step = stable_order_of_keys(taken, axis, down)
        order = np.take_along_axis(order, step, axis) if key.dim() else order
    return order


def check(keys, dim=-1, descending=False):
    got = gs.lexsort(keys, dim, descending)
    assert got.dtype is torch.int64 and got.shape == keys[0].shape and got.device == keys[0].device
    assert np.array_equal(got.cpu().numpy(), expected(keys, dim, descending))


def few(dtype, shape, device, seed=0):
    """Keys with ties, so that the next key matters."""
    return make("zipf" if dtype in COMPLEX else "two_values", shape, dtype, device, seed=seed)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_every_dtype_as_every_key(device, dtype):
    for n in (0, 1, 2, 300, 9001):
        x, ids = few(dtype, n, device), make("ids_below_64", n, torch.int32, device)
        for descending in BOTH:
            check([x, ids], descending=descending)
            check([ids, x], descending=descending)
            check([few(torch.float16, n, device, 1), x, ids // 8], descending=[descending, not descending, False])
    for name in distributions_of(dtype):
        check([make(name, 2000, dtype, device), make("two_values", 2000, torch.uint8, device)])
        check([make("ids_below_64", 2000, torch.int64, device), make(name, 2000, dtype, device)], descending=[True, False])


def test_as_numpy_lexsort(device):
    keys = torch.randint(0, 4, (4, 5000), generator=torch.Generator().manual_seed(0)).to(device)
    for given in (keys, list(keys), tuple(keys), keys[:1]):
        want = np.lexsort(tuple(key.cpu().numpy() for key in given))
        assert np.array_equal(gs.lexsort(given).cpu().numpy(), want)
    matrix = keys.view(2, 50, 200)
    for axis in (0, 1, -1, -2):
        want = np.lexsort(matrix.cpu().numpy(), axis=axis)
        assert np.array_equal(gs.lexsort(matrix, axis).cpu().numpy(), want)


def test_columns_rows_and_strides(device):
    x = torch.randint(0, 3, (6, 40, 5), generator=torch.Generator().manual_seed(1)).to(device)
    for dim in range(-2, 2):
        check([x[..., i] for i in range(5)], dim)
        check([x[..., 2], x[..., 1].to(torch.uint16), x[..., 0].bool()], dim, [True, False, True])
        check([x[:, :1, 0].expand(6, 40), x[..., 3]], dim)
    check([x[0, 0, 0], x[1, 0, 0]], 0)
    check([x[0].t(), x[1].t().to(torch.float8_e5m2)])
    check([x[:0, :, 0], x[:0, :, 1]], 1)


@pytest.mark.gpu
def test_millions():
    low, high = make("random_bits", 2**22 + 3, torch.int32, "cuda"), make("ids_below_64", 2**22 + 3, torch.int64, "cuda")
    order = gs.lexsort([low, high])
    assert_is_stable_sort((high << 32) + (low.long() + 2**31), None, order)


def test_more_keys_than_a_launch_takes(device):
    pool = torch.randint(0, 2, (60, 2000), generator=torch.Generator().manual_seed(4)).to(device)
    keys = [pool[i].to(dtype) for i, dtype in zip(range(60), (*DTYPES, *DTYPES, *DTYPES, *DTYPES))]
    check(keys, descending=[i % 3 == 0 for i in range(60)])
    rows = [key[:1980].view(30, 66) for key in keys]
    check(rows, 0)
    check(rows, 1, True)


@pytest.mark.gpu
def test_ties_of_every_length():
    """Keys of more than one word at sizes of the radix sort: runs of equal leading words are mended, short and long, or left to a chain."""
    n = 2**19 + 5
    low = make("random_bits", n, torch.int64, "cuda")
    for values in (1, 3, 100, n // 1000, n // 40, n // 10, n):
        pool = make("random_bits", values, torch.int64, "cuda")
        high = pool[torch.randint(values, (n,), generator=torch.Generator().manual_seed(values)).cuda()]
        check([low, high])
        check([low, pool[torch.arange(n, device="cuda") % values], high], descending=[False, True, False])
        check([low.float(), high.double(), high], descending=True)
    mixed = torch.where(torch.arange(n, device="cuda") % 100 < 3, torch.arange(n, device="cuda") // 3000, low * 3)  # some long runs
    check([low, mixed])
    rows = torch.stack((low[: 2**19], low[1 : 2**19 + 1] // 2**40)).view(2, 2, 2**18)
    check([rows[0], rows[1] // 2**20])


def test_scripted_and_checked(device):
    keys = [torch.tensor([1, 0, 1, 0], device=device), torch.tensor([2.0, 2.0, 1.0, 1.0], device=device)]

    @torch.jit.script
    def scripted(a: torch.Tensor, b: torch.Tensor):
        lexsort = torch.ops.gpusort.lexsort
        return lexsort([a, b], -1, [False, True]), lexsort([a, b]), lexsort([a, b], -1), lexsort([a, b], descending=[True, False])

    for call in (scripted, torch.compile(lambda a, b: scripted(a, b), backend="eager")):
        got = [order.tolist() for order in call(*keys)]
        assert got == [[1, 0, 3, 2], [3, 2, 1, 0], [3, 2, 1, 0], [2, 3, 0, 1]]
    torch.library.opcheck(torch.ops.gpusort.lexsort.default, (keys, 0, [True, False]))


def test_torchscript_keeps_its_list(device):
    """The stable ABI (torch 2.11) would take the tensors out of it."""

    @torch.jit.script
    def scripted(keys: list[torch.Tensor]):
        first = torch.ops.gpusort.lexsort(keys)
        return first, torch.ops.gpusort.lexsort(keys), keys

    keys = [torch.tensor([1, 0, 1, 0], device=device), torch.tensor([2.0, 2.0, 1.0, 1.0], device=device)]
    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with mode():
            for left in (keys, [key.clone() for key in keys]):
                first, second, after = scripted(left)
                assert first.tolist() == second.tolist() == [3, 2, 1, 0]
                assert all(torch.equal(a, b) and torch.equal(a, c) for a, b, c in zip(keys, left, after))


def test_keys_are_not_changed_and_need_no_gradient(device):
    keys = [make("nans", 500, torch.float32, device).requires_grad_(), make("two_values", 500, torch.bool, device)]
    before = [bits_of(key) for key in keys]
    assert not gs.lexsort(keys).requires_grad
    assert all(np.array_equal(bits_of(key), bits) for key, bits in zip(keys, before))


def test_vmap(device):
    keys = torch.randint(0, 4, (3, 2, 50), generator=torch.Generator().manual_seed(0)).to(device)
    got = torch.vmap(lambda a, b: gs.lexsort([a, b], descending=(True, False)))(keys[:, 0], keys[:, 1])
    for i in range(3):
        assert torch.equal(got[i], gs.lexsort(list(keys[i]), descending=(True, False)))


def test_vmap_of_scalars_and_of_one_key_alone(device):
    keys = torch.randint(0, 4, (3, 50), generator=torch.Generator().manual_seed(0)).to(device)
    shared = torch.arange(50, device=device) % 3
    assert torch.vmap(lambda a, b: gs.lexsort([a, b]))(keys[:, 0], keys[:, 1]).tolist() == [0, 0, 0]
    got = torch.vmap(lambda a: gs.lexsort([a, shared]))(keys)
    assert all(torch.equal(got[i], gs.lexsort([keys[i], shared])) for i in range(3))


def test_errors(device):
    x = torch.zeros(3, 4, device=device)
    for error, match, call in (
        (ValueError, "keys is empty", lambda: gs.lexsort([])),
        (ValueError, "keys has no dims", lambda: gs.lexsort(x[0, 0])),
        (ValueError, r"keys\[0\] has shape \[3, 4\] and keys\[1\] has shape \[3\]", lambda: gs.lexsort([x, x[:, 0]])),
        (ValueError, "descending has 1 elements.*2 keys", lambda: gs.lexsort([x, x], descending=[True])),
        (IndexError, "dim=2", lambda: gs.lexsort([x, x], 2)),
        (TypeError, r"keys\[1\] must be a Tensor", lambda: gs.lexsort([x, 3])),
        (TypeError, "keys must be a sequence", lambda: gs.lexsort(3)),
        (TypeError, "complex32", lambda: gs.lexsort([x, x.view(torch.int32).view(torch.complex32)])),
        (ValueError, r"keys has shape \[3, 4\] and values\[1\] has shape \[4\]", lambda: gs.sort_by_key(x, x, x[0])),
        (IndexError, "dim=-3", lambda: gs.sort_by_key(x, x, dim=-3)),
        (TypeError, "must be a Tensor", lambda: gs.sort_by_key(x, [1, 2])),
    ):
        with pytest.raises(error, match=match):
            call()


@pytest.mark.gpu
def test_mixed_devices():
    x = torch.zeros(3, device="cuda")
    for call in (lambda: gs.lexsort([x, x.cpu()]), lambda: gs.sort_by_key(x, x.cpu()), lambda: gs.sort_by_key(x.cpu(), x)):
        with pytest.raises(RuntimeError, match="device"):
            call()


# ---- sort_by_key


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_values_of_every_dtype_keep_their_bits(device, dtype):
    for shape, dim in (((0,), 0), ((1,), -1), ((5000,), 0), ((30, 41), 0), ((30, 41), 1), ((), 0)):
        keys = few(torch.float32, shape, device)
        values = make("random_bits" if dtype not in COMPLEX else "zipf", shape, dtype, device)
        for descending in BOTH:
            result = gs.sort_by_key(keys, values, keys, dim=dim, descending=descending)
            order = stable_order(keys, dim, descending)
            assert isinstance(result, tuple) and len(result) == 3
            for got, source in zip(result, (keys, values, keys)):
                assert got.dtype is source.dtype and np.array_equal(bits_of(got), take_bits(source, order, dim))
        swapped = gs.sort_by_key(values, keys, dim=dim)
        for got, source in zip(swapped, (values, keys)):
            assert np.array_equal(bits_of(got), take_bits(source, stable_order(values, dim), dim))


def test_no_values_and_strided_ones(device):
    keys = make("zipf", (40, 30), torch.int16, device)
    (alone,) = gs.sort_by_key(keys, dim=0)
    assert np.array_equal(bits_of(alone), np.sort(bits_of(keys).view(np.int16), axis=0).view(np.uint16))
    values = make("random_bits", (30, 40), torch.uint32, device).t()
    _, moved = gs.sort_by_key(keys, values)
    assert np.array_equal(bits_of(moved), take_bits(values, stable_order(keys), -1))


def test_gradients_flow_through_keys_and_values(device):
    generator = torch.Generator().manual_seed(3)
    keys = (torch.randperm(20, generator=generator).double() / 3).view(4, 5).to(device).requires_grad_()
    values = torch.randn(4, 5, generator=generator, dtype=torch.float64).to(device).requires_grad_()
    assert gradcheck(lambda k, v: gs.sort_by_key(k, v, v * 2, dim=0, descending=True), (keys, values))


@pytest.mark.parametrize("dtype", [torch.float8_e5m2, torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.complex32], ids=name_of)
def test_gradients_of_values_that_torch_does_not_index(device, dtype):
    wide = torch.complex64 if dtype.is_complex else torch.float32
    values = torch.arange(5.0, device=device).to(wide).to(dtype).requires_grad_()
    _, moved = gs.sort_by_key(torch.tensor([3, 1, 2, 5, 4], device=device), values)
    (moved.to(wide) * torch.arange(1.0, 6.0, device=device)).real.sum().backward()
    assert values.grad.dtype is dtype and values.grad.to(wide).tolist() == [3.0, 1.0, 2.0, 5.0, 4.0]
