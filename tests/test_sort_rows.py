"""sort_rows: rows in lexicographic order, against NumPy's lexsort of the columns."""

import doctest

import numpy as np
import pytest
import torch
from cases import COMPLEX, DTYPES, distributions_of, make, name_of
from reference import bits_of, numpy_keys, stable_order_of_keys
from torch.autograd import gradcheck

import torch_gpusort as gs
from torch_gpusort import _lexsort

BOTH = (False, True)


def expected(x, descending=False):
    """Stable sorts by each column, the last one first."""
    order = np.arange(x.shape[0])
    columns = numpy_keys(x)
    for c in reversed(range(x.shape[1])):
        order = order[stable_order_of_keys(columns[order, c], 0, descending)]
    return order


def check(x, descending=False):
    result = gs.sort_rows(x, descending)
    assert type(result).__name__ == "SortRowsResult" and result._fields == ("values", "indices")
    values, indices = result
    order = expected(x, descending)
    assert indices.dtype is torch.int64 and indices.shape == x.shape[:1] and indices.device == x.device
    assert np.array_equal(indices.cpu().numpy(), order)
    assert values.dtype is x.dtype and values.shape == x.shape and values.device == x.device and values.is_contiguous()
    assert np.array_equal(bits_of(values), bits_of(x)[order])


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_every_dtype(device, dtype):
    for rows, columns in ((0, 3), (1, 4), (300, 1), (1500, 2), (999, 3), (400, 9), (50, 40)):
        for name in ("two_values" if dtype not in COMPLEX else "zipf", distributions_of(dtype)[0]):
            for descending in BOTH:
                check(make(name, (rows, columns), dtype, device), descending)


def test_without_columns_and_with_equal_rows(device):
    values, indices = gs.sort_rows(torch.empty(5, 0, device=device))
    assert values.shape == (5, 0) and indices.tolist() == [0, 1, 2, 3, 4]
    check(torch.ones(700, 3, dtype=torch.float64, device=device), True)


def test_strides(device):
    x = make("two_values", (60, 8, 9), torch.int64, device)
    for view in (x[:, 0], x[:, :, 0], x[0].t(), x[::2, 1], x[3, ::2, 1::3], x[:1, 2].expand(40, 9), x[:, :1, 0].expand(60, 5)):
        check(view)
        check(view, True)


@pytest.mark.gpu
def test_large_matrices():
    """Sizes at which the leading words are sorted and their ties mended: few ties, runs of all lengths, keys that narrow to one word."""
    n = 2**20 + 77
    wide = make("random_bits", (n, 2), torch.int64, "cuda")
    check(wide)
    for count in (2, 3000, n // 40, n // 2):
        pool = make("random_bits", count, torch.int64, "cuda")
        primary = pool[torch.randint(count, (n,), generator=torch.Generator().manual_seed(1)).cuda()]
        check(torch.stack((primary, wide[:, 1]), 1))
        check(torch.stack((primary, wide[:, 1] // 2**60, wide[:, 0]), 1), True)
    check(wide // 2**55)
    check(torch.stack((torch.where(torch.arange(n, device="cuda") % 50 == 0, 7, wide[:, 0]), wide[:, 1]), 1))


def test_gradients_flow_through_values(device):
    x = torch.randperm(24, generator=torch.Generator().manual_seed(0)).double().view(6, 4).div(4).floor().to(device)
    x = (x + torch.arange(24.0, device=device, dtype=torch.float64).view(6, 4) / 7).requires_grad_()
    assert gradcheck(lambda t: gs.sort_rows(t).values, (x,))
    values, indices = gs.sort_rows(x, True)
    assert not indices.requires_grad
    (values * torch.arange(24.0, device=device).view(6, 4)).sum().backward()
    assert torch.equal(x.grad[indices], torch.arange(24.0, device=device, dtype=torch.float64).view(6, 4))
    assert torch.equal(torch.func.jvp(lambda t: gs.sort_rows(t).values, (x.detach(),), (x.detach(),))[1], gs.sort_rows(x.detach()).values)


def test_rows_without_columns_are_part_of_the_graph(device):
    """A loss over no columns can be sent back, as over no rows."""
    for shape in ((5, 0), (0, 3), (0, 0)):
        x = torch.empty(shape, device=device, requires_grad=True)
        values, indices = gs.sort_rows(x)
        assert values.shape == shape and not indices.requires_grad
        assert indices.tolist() == list(range(shape[0]))
        values.sum().backward()
        assert x.grad.shape == shape
        assert torch.func.grad(lambda t: gs.sort_rows(t).values.sum())(x.detach()).shape == shape


def test_vmap_compile_and_script(device):
    x = torch.randint(0, 3, (4, 50, 3), generator=torch.Generator().manual_seed(2)).to(device)
    batched = torch.vmap(gs.sort_rows)(x)
    columns_last = torch.vmap(lambda t: gs.sort_rows(t, True).indices, in_dims=2)(x.permute(1, 2, 0))
    for i in range(4):
        assert all(torch.equal(part[i], whole) for part, whole in zip(batched, gs.sort_rows(x[i])))
        assert torch.equal(columns_last[i], gs.sort_rows(x[i], True).indices)
    compiled = torch.compile(lambda t: gs.sort_rows(t, True), backend="eager", fullgraph=True, dynamic=True)
    assert all(torch.equal(got, want) for got, want in zip(compiled(x[0]), gs.sort_rows(x[0], True)))

    @torch.jit.script
    def scripted(t: torch.Tensor):
        return torch.ops.gpusort.sort_rows(t, True)

    assert all(torch.equal(got, want) for got, want in zip(scripted(x[0]), gs.sort_rows(x[0], True)))
    torch.library.opcheck(torch.ops.gpusort.sort_rows.default, (x[0],))
    torch.library.opcheck(torch.ops.gpusort.sort_rows.default, (x[0].double().requires_grad_(), True))


def test_errors(device):
    for error, match, call in (
        (ValueError, r"input has shape \[3\]; it must have two dims", lambda: gs.sort_rows(torch.zeros(3, device=device))),
        (ValueError, "two dims", lambda: torch.compile(gs.sort_rows, backend="eager")(torch.zeros(2, 2, 2, device=device))),
        (TypeError, "input must be a Tensor, not list", lambda: gs.sort_rows([[1]])),
        (TypeError, "complex32", lambda: gs.sort_rows(torch.zeros(2, 2, dtype=torch.int32, device=device).view(torch.complex32))),
    ):
        with pytest.raises((error, torch._dynamo.exc.TorchRuntimeError), match=match):
            call()


def test_the_examples_of_the_docstrings():
    outcome = doctest.testmod(_lexsort, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted >= 5 and outcome.failed == 0
