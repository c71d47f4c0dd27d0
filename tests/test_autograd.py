"""Gradients: values carry them and indices do not; first and second order, reverse and forward, functions and raw ops, eager and
compiled.
"""

# ruff: noqa: B023 (the functions made in loops are called there and then)

import pytest
import torch
from cases import generator_of, make, two_sorted
from torch.autograd import forward_ad, gradcheck, gradgradcheck

import torch_gpusort
import torch_gpusort as gs

ops = torch.ops.gpusort


def distinct(shape, device, dtype=torch.float64, seed=0):
    """Distinct values, far enough apart for finite differences."""
    count = int(torch.tensor(shape).prod()) if shape else 1
    values = torch.randperm(count, generator=generator_of("cpu", seed)).to(torch.float64) / 7 - count / 20
    if dtype.is_complex:
        values = torch.complex(values, torch.randn(count, generator=generator_of("cpu", seed + 1), dtype=torch.float64))
    return values.to(dtype).view(shape).to(device).requires_grad_()


def runs(lengths, device, dtype=torch.float64, rows=()):
    """Two sorted inputs without ties, far enough apart for finite differences."""
    both = torch.sort(distinct((*rows, sum(lengths)), "cpu", torch.float64).detach()).values
    chosen = torch.zeros(sum(lengths), dtype=torch.bool)
    chosen[torch.randperm(sum(lengths), generator=generator_of("cpu", 3))[: lengths[0]]] = True
    return tuple(both[..., mask].to(dtype).to(device).requires_grad_() for mask in (chosen, ~chosen))


ONE_TENSOR = {
    "sort": lambda x, dim: gs.sort(x, dim).values,
    "sort descending": lambda x, dim: gs.sort(x, dim, True).values,
    "sort with int32 indices": lambda x, dim: gs.sort(x, dim, index_dtype=torch.int32).values,
    "sort_keys": lambda x, dim: gs.sort_keys(x, dim),
    "sort_keys descending": lambda x, dim: gs.sort_keys(x, dim, True),
    "radix_sort": lambda x, dim: gs.radix_sort(x, dim).values,
    "radix_sort by the high bits": lambda x, dim: gs.radix_sort(x, dim, begin_bit=44).values,
    "msort": lambda x, dim: gs.msort(x),
    "raw sort": lambda x, dim: ops.sort(x, dim)[0],
    "raw sort descending": lambda x, dim: ops.sort(x, dim, True)[0],
    "raw sort_keys": lambda x, dim: ops.sort_keys(x, dim),
    "raw msort": lambda x, dim: ops.msort(x),
    "raw radix_sort": lambda x, dim: ops.radix_sort(x, dim)[0],
}
TWO_RUNS = {
    "merge": lambda a, b: gs.merge(a, b),
    "merge with indices": lambda a, b: gs.merge(a, b, return_indices=True).values,
    "merge descending": lambda a, b: gs.merge(a.flip(-1), b.flip(-1), descending=True),
    "raw merge": lambda a, b: ops.merge(a, b),
    "raw merge_with_indices": lambda a, b: ops.merge_with_indices(a, b)[0],
}


@pytest.mark.parametrize("name", ONE_TENSOR)
def test_first_and_second_order(device, name):
    for shape, dims in (((4, 5), (0, 1, -1)), ((7,), (0, -1)), ((), (0, -1)), ((2, 3, 2), (1,)), ((0,), (0,)), ((3, 0), (0, 1))):
        x = distinct(shape, device)
        for dim in dims:
            assert gradcheck(lambda t: ONE_TENSOR[name](t, dim), (x,), check_forward_ad=True, check_batched_grad=bool(x.numel()))
            assert gradgradcheck(lambda t: ONE_TENSOR[name](t, dim) ** 2, (x,))
    x = distinct((4, 6), device)
    assert gradcheck(lambda t: ONE_TENSOR[name](t.t()[1:], 0), (x,))


@pytest.mark.parametrize("name", TWO_RUNS)
def test_first_and_second_order_of_merges(device, name):
    for lengths, rows in (((4, 5), ()), ((1, 6), (2,)), ((0, 3), ()), ((3, 2), (2, 2))):
        a, b = runs(lengths, device, rows=rows)
        assert gradcheck(TWO_RUNS[name], (a, b), check_forward_ad=True)
        assert gradgradcheck(lambda p, q: TWO_RUNS[name](p, q) ** 2, (a, b))
        assert gradcheck(lambda p: TWO_RUNS[name](p, b.detach()), (a,))
        assert gradcheck(lambda q: TWO_RUNS[name](a.detach(), q), (b,))


@pytest.mark.parametrize("function", [gs.merge_by_key, ops.merge_by_key], ids=["function", "raw op"])
def test_merge_by_key_sends_gradients_to_keys_and_values(device, function):
    a, b = runs((4, 6), device)
    p, q = distinct((4,), device, seed=1), distinct((6,), device, seed=2)
    assert gradcheck(lambda *t: function(*t), (a, p, b, q), check_forward_ad=True)
    assert gradgradcheck(lambda *t: [r**2 for r in function(*t)], (a, p, b, q))
    integer_keys = two_sorted((4, 6), torch.int64, device)
    assert gradcheck(lambda v, w: function(integer_keys[0], v, integer_keys[1], w)[1], (p, q))
    keys, values = function(a, p.detach().long(), b, q.detach().long())
    assert keys.requires_grad and not values.requires_grad


def test_complex(device):
    x = distinct((4, 5), device, torch.complex128)
    for dim in (0, 1):
        assert gradcheck(lambda t: gs.sort(t, dim).values, (x,))
        assert gradcheck(lambda t: gs.sort_keys(t, dim, True), (x,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_float_dtype_has_torchs_gradient(device, dtype):
    """Against torch.sort itself, ties and all."""
    data = torch.randint(0, 9, (6, 50), generator=generator_of("cpu", 4)).to(dtype).to(device)
    weights = torch.arange(300, device=device).view(6, 50).to(dtype)
    for dim in (0, 1):
        for descending in (False, True):
            x, y = data.clone().requires_grad_(), data.clone().requires_grad_()
            (gs.sort(x, dim, descending).values * weights).sum().backward()
            (torch.sort(y, dim=dim, descending=descending, stable=True).values * weights).sum().backward()
            assert torch.equal(x.grad, y.grad) and x.grad.dtype is dtype


def test_what_requires_a_gradient_and_what_does_not(device):
    x = distinct((5, 6), device)
    values, indices = gs.sort(x)
    assert values.requires_grad and not indices.requires_grad
    assert not gs.argsort(x).requires_grad and not ops.argsort(x).requires_grad
    assert not gs.sort(x.detach()).values.requires_grad
    assert not gs.sort(torch.arange(5, device=device)).values.requires_grad
    with torch.no_grad():
        assert not gs.sort(x).values.requires_grad and not ops.sort(x)[0].requires_grad
    a, b = runs((3, 4), device)
    merged, where = gs.merge(a, b.detach(), return_indices=True)
    assert merged.requires_grad and not where.requires_grad
    assert not gs.co_rank(torch.arange(3, device=device), a[:1], b).requires_grad


def test_gradient_of_a_part_of_the_result(device):
    x = distinct((30,), device)
    gs.sort(x, descending=True).values[:3].sum().backward()
    assert torch.equal(x.grad, (x >= x.detach().sort(descending=True).values[2]).to(x.dtype))


def test_input_used_twice_and_accumulated(device):
    x = distinct((20,), device)
    (gs.sort(x).values * gs.sort(x, descending=True).values + x).sum().backward()
    y = x.detach().clone().requires_grad_()
    (y.sort().values * y.sort(descending=True).values + y).sum().backward()
    assert torch.equal(x.grad, y.grad)


def test_changing_the_values_in_place_after_the_sort(device):
    """The gradient rests on the indices alone, so values may be changed; changing the indices is noticed."""
    x = distinct((20,), device)
    values, indices = gs.sort(x)
    values.mul_(2)
    values.sum().backward()
    assert bool(x.grad.eq(2).all())
    values, indices = gs.sort(x)
    indices.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        values.sum().backward()


def test_forward_mode(device):
    x, tangent = distinct((6, 7), device).detach(), torch.arange(42.0, device=device, dtype=torch.float64).view(6, 7)
    for function in (lambda t: gs.sort(t, 0, True), lambda t: ops.sort(t, 0, True), lambda t: gs.radix_sort(t, 0, True)):
        with forward_ad.dual_level():
            values, indices = function(forward_ad.make_dual(x, tangent))
            primal, moved = forward_ad.unpack_dual(values)
            assert forward_ad.unpack_dual(indices).tangent is None
        assert torch.equal(moved, tangent.gather(0, indices)) and torch.equal(primal, x.sort(0, True).values)
    values, moved = torch.func.jvp(lambda t: gs.sort_keys(t, 1), (x,), (tangent,))
    assert torch.equal(moved, tangent.gather(1, x.argsort(1)))


def test_functional_transforms(device):
    x = distinct((5, 8), device).detach()
    weights = torch.arange(8.0, device=device, dtype=torch.float64)

    def ours(t):
        return (gs.sort(t).values ** 2 * weights).sum()

    def theirs(t):
        return (torch.sort(t).values ** 2 * weights).sum()

    assert torch.equal(torch.func.grad(ours)(x[0]), torch.func.grad(theirs)(x[0]))
    assert torch.equal(torch.func.hessian(ours)(x[0]), torch.func.hessian(theirs)(x[0]))
    assert torch.equal(torch.func.vmap(torch.func.grad(ours))(x), torch.func.vmap(torch.func.grad(theirs))(x))
    assert torch.equal(torch.func.jacrev(lambda t: gs.sort(t).values)(x[0]), torch.func.jacrev(lambda t: torch.sort(t).values)(x[0]))
    assert torch.equal(torch.func.jacfwd(lambda t: gs.sort(t).values)(x[0]), torch.func.jacfwd(lambda t: torch.sort(t).values)(x[0]))


def test_checkpointing(device):
    x = distinct((50,), device)
    torch.utils.checkpoint.checkpoint(lambda t: gs.sort(t).values.square().sum(), x, use_reentrant=False).backward()
    assert torch.allclose(x.grad, 2 * x.detach())


@pytest.mark.parametrize("name", ["sort", "raw sort", "sort_keys", "raw sort_keys", "radix_sort", "msort"])
def test_compiled_gradients_equal_eager_ones(device, name):
    torch._dynamo.reset()
    weights = torch.arange(35.0, device=device, dtype=torch.float64).view(5, 7)

    def loss(t):
        return (ONE_TENSOR[name](t, 0) ** 2 * weights).sum()

    x, y = distinct((5, 7), device), distinct((5, 7), device)
    torch.compile(loss, fullgraph=True, backend="aot_eager")(x).backward()
    loss(y).backward()
    assert torch.equal(x.grad, y.grad)


def test_compiled_gradients_of_a_merge(device):
    torch._dynamo.reset()
    weights = torch.arange(11.0, device=device, dtype=torch.float64)

    def loss(a, b):
        return (gs.merge(a, b) ** 2 * weights).sum()

    first, second = runs((5, 6), device), runs((5, 6), device)
    torch.compile(loss, fullgraph=True, backend="aot_eager")(*first).backward()
    loss(*second).backward()
    assert all(torch.equal(p.grad, q.grad) for p, q in zip(first, second))


def test_large_gradient(device):
    n = 300_000 if device.type == "cpu" else 3_000_000
    x = torch.randn(n, device=device, generator=generator_of(device, 5)).requires_grad_()
    weights = torch.arange(n, device=device, dtype=torch.float32)
    (gs.sort(x).values * weights).sum().backward()
    assert torch.equal(x.grad[x.detach().argsort(stable=True)], weights)


def test_autograd_is_not_asked_where_nothing_watches(device, monkeypatch):
    """The Python kernels of autograd cost a small call as much as the sort itself."""
    x = make("uniform", 50, torch.float32, device)
    watched = x.clone().requires_grad_()
    calls = []
    wanted = torch_gpusort._autograd.gradient_wanted
    monkeypatch.setattr(torch_gpusort._autograd, "gradient_wanted", lambda *tensors: calls.append(tensors) or wanted(*tensors))
    keys = gs.sort_keys(x)
    for call in (
        lambda t: gs.sort(t),
        lambda t: gs.sort(t, 0, True, index_dtype=torch.int32),
        lambda t: gs.sort_keys(t),
        lambda t: gs.argsort(t),
        lambda t: gs.radix_sort(t),
        lambda t: gs.merge(t, keys),
        lambda t: gs.merge(t, keys, return_indices=True),
        lambda t: gs.merge_by_key(t, t, keys, keys),
        lambda t: gs.sort_by_key(t, t),
    ):
        call(x)
        with torch.no_grad():
            call(watched)
        assert not calls
    assert gs.sort(watched).values.requires_grad and gs.merge(watched, keys).requires_grad
    assert len(calls) == 2
