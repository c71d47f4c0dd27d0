"""What a tensor carries besides its memory: a pending negation or conjugation, and names of its dimensions."""

import warnings

import numpy as np
import pytest
import torch
from cases import COMPLEX, make, name_of, two_sorted
from reference import assert_stable_sort, bits_of, stable_order, take_bits

import torch_gpusort as gs

# torch._neg_view itself takes these only; the imaginary part of a conjugated tensor is where such views come from.
NEGATED = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32)


@pytest.mark.parametrize("dtype", NEGATED, ids=name_of)
def test_a_pending_negation(device, dtype):
    stored = make("zipf", (6, 50), dtype, device)
    x, plain = torch._neg_view(stored), -stored
    assert x.is_neg() and not plain.is_neg()
    order = stable_order(plain, 1)
    for result in (gs.sort(x), gs.sort(x, 1, algorithm="merge"), gs.radix_sort(x), gs.merge_sort(x), gs.bitonic_sort(x), gs.sample_sort(x)):
        assert_stable_sort(plain, result, 1, order=order)
        assert not result.values.is_neg()
    assert np.array_equal(gs.argsort(x).cpu().numpy(), order)
    assert np.array_equal(bits_of(gs.sort_keys(x)), take_bits(plain, order, 1))
    assert np.array_equal(bits_of(gs.msort(x)), take_bits(plain, stable_order(plain, 0), 0))
    target = torch.empty_like(plain), torch.empty_like(order_of(plain))
    gs.sort(x, out=target)
    assert_stable_sort(plain, target, 1, order=order)
    keys = make("ids_below_64", (6, 50), torch.int64, device)
    for values in (x, x[:, :]):
        _, moved = gs.sort_by_key(keys, values)
        assert np.array_equal(bits_of(moved), take_bits(plain, stable_order(keys, 1), 1))
    assert np.array_equal(gs.lexsort([x[0], keys[0]]).cpu().numpy(), gs.lexsort([plain[0], keys[0]]).cpu().numpy())


def order_of(x):
    return torch.empty(x.shape, dtype=torch.int64, device=x.device)


def test_a_pending_negation_in_merges(device):
    for dtype in (torch.float16, torch.float32):
        a, b = two_sorted((70, 50), dtype, device, name="zipf", descending=True)
        x, y = torch._neg_view(a), torch._neg_view(b)  # negated, so sorted in ascending order
        want = gs.merge(-a, -b, return_indices=True)
        for got, expected in zip(gs.merge(x, y, return_indices=True, check=True), want):
            assert np.array_equal(bits_of(got), bits_of(expected))
        for got, expected in zip(gs.merge_by_key(x, x, y, y), (want.values, want.values)):
            assert np.array_equal(bits_of(got), bits_of(expected))
        got = gs.merge_many([x, y], return_indices=True)
        assert np.array_equal(bits_of(got.values), bits_of(want.values)) and torch.equal(got.indices, want.indices)
        k = torch.arange(121, device=device)
        assert torch.equal(gs.co_rank(k, x, y), gs.co_rank(k, -a, -b))


@pytest.mark.parametrize("dtype", COMPLEX, ids=name_of)
def test_a_pending_conjugation(device, dtype):
    stored = make("zipf", 300, dtype, device)
    x, plain = stored.conj(), stored.conj().resolve_conj()
    assert x.is_conj()
    assert_stable_sort(plain, gs.sort(x))
    keys = make("ids_below_64", 300, torch.int64, device)
    assert np.array_equal(bits_of(gs.sort_by_key(keys, x)[1]), take_bits(plain, stable_order(keys), -1))
    assert_stable_sort(plain.imag.contiguous(), gs.sort(stored.conj().imag), -1)  # a negated view of every other element


@pytest.fixture
def named(device):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Named tensors")
        yield torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]], device=device).rename("batch", "score")


def test_names_of_dimensions(named):
    plain = named.rename(None)
    for dim in ("score", "batch", 0, 1, -1):
        number = ("batch", "score").index(dim) if isinstance(dim, str) else dim
        for got, want in zip(gs.sort(named, dim, True), gs.sort(plain, number, True)):
            assert got.names == named.names and torch.equal(got.rename(None), want)
        for function in (gs.argsort, gs.sort_keys, gs.merge_sort):
            got, want = function(named, dim), function(plain, number)
            for g, w in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
                assert g.names == named.names and torch.equal(g.rename(None), w)
    assert gs.msort(named).names == named.names
    with pytest.raises(RuntimeError, match=r"dim is 'class'.*'batch', 'score'"):
        gs.sort(named, "class")
    with pytest.raises(IndexError, match="dim=2"):
        gs.sort(named, 2)
    with pytest.raises(TypeError, match="dim must be an int"):
        gs.sort(plain, "score")
    with pytest.raises(RuntimeError, match=r"\ba has dimension names.*rename\(None\)"):
        gs.merge(named, named)
    with pytest.raises(RuntimeError, match=r"keys\[1\] has dimension names.*rename\(None\)"):
        gs.lexsort([plain, named])


def test_names_of_rows_keys_and_values(named):
    plain = named.rename(None)
    values, indices = gs.sort_rows(named, True)
    assert values.names == ("batch", "score") and indices.names == ("batch",)
    assert torch.equal(values.rename(None), plain) and indices.rename(None).tolist() == [0, 1]
    want = gs.sort_by_key(plain, -plain, dim=1)
    for keys, moved, names in ((named, -plain, (None, None)), (plain, -named, named.names), (named, -named, named.names)):
        got = gs.sort_by_key(keys, moved, dim="score" if keys is named else 1)
        assert got[0].names == keys.names and got[1].names == names
        assert all(torch.equal(g.rename(None), w) for g, w in zip(got, want))


def test_names_and_gradients(named):
    x = named.double().requires_grad_()
    (gs.sort(x, "score").values.rename(None) * torch.tensor([1.0, 2.0, 3.0], device=named.device)).sum().backward()
    assert x.grad.rename(None).tolist() == [[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]]
