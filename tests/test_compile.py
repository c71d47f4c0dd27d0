"""opcheck, torch.compile, torch.export, TorchScript and fake tensors: the ops as torch's machinery sees them."""

import inspect
import io

import pytest
import torch
from cases import COMPLEX, DTYPES, make, name_of, two_sorted
from reference import assert_stable_sort, signed_view
from test_sort import SHAPES, layouts

import torch_gpusort as gs

ops = torch.ops.gpusort


def op_samples(device):
    """(op, arguments, keyword arguments): every op, plain, strided, degenerate, with gradients and without."""
    x = make("zipf", (4, 33), torch.float32, device)
    grad = x.clone().requires_grad_()
    a, b = two_sorted((20, 33), torch.float32, device, rows=(3,))
    a_grad, b_grad = a.clone().requires_grad_(), b.clone().requires_grad_()
    inputs = [x, grad, x.t(), x[:, ::3], x[:1].expand(4, 33), x[0, 0], x[:0], x.to(torch.int64), grad.double().t()]
    for t in inputs:
        yield ops.sort.default, (t,), {}
        yield ops.sort.default, (t, 0, True), {"index_dtype": torch.int32}
        yield ops.argsort.default, (t, 0), {}
        yield ops.sort_keys.default, (t, -1, True), {}
        yield ops.msort.default, (t,), {}
        yield ops.radix_sort.default, (t,), {"begin_bit": 4, "end_bit": 20}
        yield ops.merge_sort.default, (t, 0), {}
        yield ops.bitonic_sort.default, (t, -1, True), {}
        yield ops.sample_sort.default, (t,), {"descending": True}
    yield ops.radix_sort.default, (x, 0), {"algorithm": "block", "digit_bits": 4}
    yield ops.sort.default, (grad, 0), {"algorithm": "merge"}
    for p, q in ((a, b), (a_grad, b_grad), (a_grad, b), (a[:, :0], b), (a[0], b[0])):
        yield ops.merge.default, (p, q), {}
        yield ops.merge.default, (p, q), {"check": True}
        yield ops.merge_with_indices.default, (p, q), {"descending": False}
        yield ops.merge_by_key.default, (p, p, q, q), {}
        yield ops.merge_by_key.default, (p, p.detach().long(), q, q.detach().long()), {}
    offsets = torch.tensor([0, 20, 20, 53], device=device)
    for runs in (torch.cat([a[0], b[0]]), torch.cat([a[0], b[0]]).requires_grad_(), torch.cat([a[0], b[0]]).long().repeat(2)[::2]):
        for these in (offsets, offsets.repeat_interleave(2)[::2], torch.arange(54, device=device)):
            yield ops.merge_many.default, (runs, these), {}
            yield ops.merge_many_with_indices.default, (runs, these), {"descending": True}
        yield ops._take.default, (p, ops.argsort(p, 0), 0), {}
        yield ops._take.default, (p, ops.argsort(p, -1, index_dtype=torch.int32), -1), {}
    for t in inputs[:1] + inputs[2:4]:
        yield ops._sort.default, (t, 0, True), {}
        yield ops._sort_keys.default, (t, -1, False), {}
    for p, q in ((a, b), (a[0], b[0])):
        yield ops._merge.default, (p, q, False), {}
        yield ops._merge_with_indices.default, (p, q, False), {}
        yield ops._merge_by_key.default, (p, p.long(), q, q.long(), False), {}
    for t in (x, grad, x.t(), x[:0]):
        yield ops.lexsort.default, ([t, t.int(), t > 0], 0, [True, False, False]), {}
        yield ops.sort_rows.default, (t,), {"descending": True}
    yield ops.co_rank.default, (torch.arange(54, device=device), a[0], b[0]), {}
    yield ops.co_rank.default, (torch.arange(54, device=device).view(2, 27), a_grad[0], b[0]), {"descending": False}


OPS = (
    *("sort", "argsort", "sort_keys", "msort", "radix_sort", "merge_sort", "bitonic_sort", "sample_sort"),
    *("merge", "merge_with_indices", "merge_by_key", "merge_many", "merge_many_with_indices", "co_rank"),
    *("lexsort", "sort_rows"),
    *("_sort", "_sort_keys", "_merge", "_merge_with_indices", "_merge_by_key", "_take"),
)


@pytest.mark.parametrize("name", OPS)
def test_opcheck(device, name):
    ran = 0
    for op, arguments, options in op_samples(device):
        if op._name == f"gpusort::{name}":
            results = torch.library.opcheck(op, arguments, options)
            assert len(results) == 4 and set(results.values()) == {"SUCCESS"}, results
            ran += 1
    assert ran > 1


def test_every_op_of_the_library_is_checked():
    """A new op has to come with samples."""
    names = {name.split("::")[1].split(".")[0] for name in torch._C._dispatch_get_all_op_names() if name.startswith("gpusort::")}
    covered = {op._name.split("::")[1].split(".")[0] for op, _, _ in op_samples("cpu")}
    assert {n for n in names if n not in ("_build_info", "_cuda_build_info", "_explain_sort")} == covered


def shape_functions(dtype, dim):
    yield lambda t: gs.sort(t, dim)
    yield lambda t: (gs.sort_keys(t, dim), gs.argsort(t, dim, index_dtype=torch.int32), gs.msort(t))
    if dtype not in COMPLEX:
        yield lambda t: gs.radix_sort(t, dim, begin_bit=1)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_fake_results_have_the_real_ones_shape(device, dtype):
    """Meta tensors, for every layout and dim: shape, dtype and strides as the kernels give them."""
    inputs = [*layouts(dtype, device), *((f"shape {shape}", torch.zeros(shape, dtype=dtype, device=device)) for shape in SHAPES)]
    for what, x in inputs:
        meta = torch.empty_strided(x.shape, x.stride(), dtype=dtype, device="meta")
        for dim in (0, -1):
            for function in shape_functions(dtype, dim):
                for real, fake in zip(function(x), function(meta), strict=True):
                    assert (real.shape, real.dtype, fake.device.type) == (fake.shape, fake.dtype, "meta"), what
                    assert real.stride() == fake.stride(), what
    a, b = (torch.zeros(2, n, dtype=dtype, device="meta") for n in (3, 4))
    assert gs.merge(a, b).shape == (2, 7) and gs.merge(a, b, return_indices=True).indices.dtype is torch.int64
    assert gs.merge_by_key(a, a, b, b)[1].shape == (2, 7)


def test_fake_errors_are_the_real_ones():
    x = torch.zeros(3, 4, device="meta")
    for error, call in (
        (IndexError, lambda: gs.sort(x, dim=2)),
        (TypeError, lambda: gs.sort(torch.zeros(3, dtype=torch.complex32, device="meta"))),
        (ValueError, lambda: gs.sort(x, index_dtype=torch.int8)),
        (ValueError, lambda: gs.sort(x, algorithm="quick")),
        (ValueError, lambda: gs.radix_sort(x, end_bit=40)),
        (ValueError, lambda: gs.merge(x, x[:2])),
        (TypeError, lambda: gs.merge(x, x.int())),
    ):
        with pytest.raises(error):
            call()


def counting_backend(graphs):
    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    return backend


FUNCTIONS = {
    "sort": lambda x: gs.sort(x, -1, True),
    "sort by keyword": lambda x: gs.sort(x, dim=0, descending=True, stable=True, index_dtype=torch.int32),
    "argsort": lambda x: (gs.argsort(x),),
    "sort_keys": lambda x: (gs.sort_keys(x, 0),),
    "msort": lambda x: (gs.msort(x),),
    "radix_sort": lambda x: gs.radix_sort(x, end_bit=17),
    "radix_sort by blocks": lambda x: gs.radix_sort(x, kernel="block", digit_bits=4),
    "merge_sort": lambda x: gs.merge_sort(x, 0),
    "bitonic_sort": lambda x: gs.bitonic_sort(x, descending=True),
    "sample_sort": lambda x: gs.sample_sort(x),
    "raw sort": lambda x: ops.sort(x, 0, True),
    "merge": lambda x: gs.merge(gs.sort_keys(x), gs.sort_keys(x * 2), return_indices=True),
    "merge with a check": lambda x: (gs.merge(gs.sort_keys(x), gs.sort_keys(x * 2), check=True),),
    "merge_by_key": lambda x: gs.merge_by_key(gs.sort_keys(x), x, gs.sort_keys(x), x + 1),
    "co_rank": lambda x: (gs.co_rank(torch.arange(x.shape[1], device=x.device), gs.sort_keys(x[0]), gs.sort_keys(x[1])),),
    "merge_many": lambda x: gs.merge_many([gs.sort_keys(x[0]), gs.sort_keys(x[1])[1:], gs.sort_keys(x[2])], return_indices=True),
    "merge_many by offsets": lambda x: (
        gs.merge_many(gs.sort_keys(x).flatten(), torch.arange(7, device=x.device, dtype=torch.int32) * x.shape[1]),
    ),
    "lexsort": lambda x: (gs.lexsort((x, x > 1, x.int()), 0, (False, True, False)),),
    "sort_by_key": lambda x: gs.sort_by_key(x, x + 1, x > 0, dim=0),
    "named tuple": lambda x: (gs.sort(x).values + 1, gs.sort(x).indices * 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_without_a_break_for_any_size(device, name):
    function = FUNCTIONS[name]
    torch._dynamo.reset()
    graphs = []
    compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=counting_backend(graphs))
    for n in (33, 3, 1000, 5000, 8, 2, 1):
        x = make("zipf", (6, n), torch.float32, device)
        for got, want in zip(compiled(x), function(x)):
            assert torch.equal(got, want) and got.dtype is want.dtype and got.stride() == want.stride()
    assert 1 <= len(graphs) <= 4, f"{len(graphs)} graphs: recompiled for sizes"
    torch._dynamo.reset()
    aot = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (40, 700):
        x = make("zipf", (6, n), torch.float32, device)
        assert all(torch.equal(got, want) for got, want in zip(aot(x), function(x)))


def test_compiled_by_inductor(device):
    torch._dynamo.reset()

    def function(x):
        values, indices = gs.sort(x * 2, -1, True)
        low = gs.radix_sort(x, end_bit=24, kernel="auto", digit_bits=8).values
        return gs.merge(gs.sort_keys(x), gs.sort_keys(x + 1), kernel="tiled") - 1, values + 1, indices + 1, low

    compiled = torch.compile(function, fullgraph=True, dynamic=True)
    for n in (40, 3001):
        x = make("zipf", (6, n), torch.float32, device)
        assert all(torch.equal(got, want) for got, want in zip(compiled(x), function(x)))


@pytest.mark.gpu
def test_compiled_with_cuda_graphs():
    torch._dynamo.reset()

    def function(x):
        values, indices = gs.sort(x * 2, -1, True)
        return values * 4, indices * 2

    compiled = torch.compile(function, fullgraph=True, mode="reduce-overhead")
    for seed in range(5):
        x = make("uniform", (8, 5000), torch.float32, "cuda", seed=seed)
        torch.compiler.cudagraph_mark_step_begin()
        got = [t.clone() for t in compiled(x)]
        values, indices = torch.sort(x, dim=-1, descending=True, stable=True)
        assert torch.equal(got[0], values * 8) and torch.equal(got[1], indices * 2)


class Sorter(torch.nn.Module):
    def forward(self, x, a, b):
        values, indices = gs.sort(x, 0, True)
        return values, indices, gs.merge(a, b), gs.radix_sort(x, begin_bit=2)[1]


def test_exported_and_loaded_again(device):
    sizes = torch.export.Dim("rows", min=2, max=10_000), torch.export.Dim("m", min=2, max=10_000)
    x = make("zipf", (12, 5), torch.float32, device)
    a, b = two_sorted((9, 4), torch.float32, device)
    program = torch.export.export(Sorter(), (x, a, b), dynamic_shapes=({0: sizes[0]}, {0: sizes[1]}, None))
    assert any("gpusort" in str(node.target) for node in program.graph.nodes)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    loaded = torch.export.load(buffer).module()
    for rows, m in ((12, 9), (300, 70)):
        x = make("zipf", (rows, 5), torch.float32, device, seed=1)
        a = two_sorted((m, 4), torch.float32, device)[0]
        assert all(torch.equal(got, want) for got, want in zip(loaded(x, a, b), Sorter()(x, a, b)))


SCRIPT = """
def f(x: Tensor):
    return torch.ops.gpusort.sort(x, 0, True, True)

def g(x: Tensor):
    values, indices = torch.ops.gpusort.sort(x, dim=1, index_dtype=torch.int32)
    return torch.ops.gpusort.sort_keys(x), torch.ops.gpusort.argsort(x), torch.ops.gpusort.radix_sort(x, begin_bit=1)[1], indices

def h(a: Tensor, b: Tensor):
    k = torch.arange(4, device=a.device)
    return torch.ops.gpusort.merge(a, b), torch.ops.gpusort.merge_with_indices(a, b)[1], torch.ops.gpusort.co_rank(k, a, b)
"""


def test_torchscript(device):
    unit = torch.jit.CompilationUnit(SCRIPT)
    x = make("zipf", (50, 4), torch.int64, device)
    assert_stable_sort(x, unit.f(x), 0, True)
    for got, want in zip(
        unit.g(x), (gs.sort_keys(x), gs.argsort(x), gs.radix_sort(x, begin_bit=1).indices, gs.argsort(x, 1, index_dtype=torch.int32))
    ):
        assert torch.equal(got, want) and got.dtype is want.dtype
    a, b = two_sorted((30, 40), torch.float32, device)
    merged = gs.merge(a, b, return_indices=True)
    for got, want in zip(unit.h(a, b), (merged.values, merged.indices, gs.co_rank(torch.arange(4, device=device), a, b))):
        assert torch.equal(got, want)


def test_scripted_and_saved(device, tmp_path):
    def function(x: torch.Tensor):
        return torch.ops.gpusort.sort(x, 0, True)

    scripted = torch.jit.script(function)
    scripted.save(str(tmp_path / "sort.pt"))
    loaded = torch.jit.load(str(tmp_path / "sort.pt"))
    x = make("zipf", (50, 4), torch.float32, device)
    assert_stable_sort(x, loaded(x), 0, True)


def test_functionalized_and_traced(device):
    from torch.fx.experimental.proxy_tensor import make_fx

    x = make("zipf", (6, 50), torch.float32, device)
    graph = make_fx(torch.func.functionalize(lambda t: gs.sort(t, 0)), tracing_mode="symbolic")(x)
    for got, want in zip(graph(x), gs.sort(x, 0)):
        assert torch.equal(signed_view(got), signed_view(want))


@pytest.mark.parametrize("name", [name for name in OPS if not name.startswith("_") and hasattr(gs, name)])
def test_schemas_have_the_defaults_of_the_functions(name):
    """TorchScript and exported programs call the operators, which are to be called as the functions are."""
    function = inspect.signature(getattr(gs, name)).parameters
    renamed = {"self": "input", "algorithm": "kernel" if name in ("radix_sort", "merge") else "algorithm"}
    arguments = {renamed.get(a.name, a.name): a for a in getattr(ops, name).default._schema.arguments}
    for parameter in arguments.keys() & function.keys():
        default = function[parameter].default
        if (name, parameter) == ("lexsort", "descending"):  # None: False for each of the keys
            assert default is False
            default = None
        if (name, parameter) == ("merge_many", "offsets"):  # not needed of a sequence of runs, which the operator does not take
            default = inspect.Parameter.empty
        argument = arguments[parameter]
        assert argument.has_default_value() == (default is not inspect.Parameter.empty), parameter
        assert not argument.has_default_value() or argument.default_value == default, parameter
    positional = [p.name for p in function.values() if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert [a for a in arguments if not arguments[a].kwarg_only] == [p for p in positional if p in arguments]


def test_every_default_under_torchscript_and_compile(device):
    """All operators called with what has no default alone."""

    def least(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, k: torch.Tensor):
        found = [torch.ops.gpusort.sort(x)[1], torch.ops.gpusort.radix_sort(x)[1], torch.ops.gpusort.merge_sort(x)[1]]
        found += [torch.ops.gpusort.bitonic_sort(x)[1], torch.ops.gpusort.sample_sort(x)[1], torch.ops.gpusort.argsort(x)]
        found += [torch.ops.gpusort.lexsort([-x, x]), torch.ops.gpusort.sort_keys(x), torch.ops.gpusort.msort(x)]
        found += [torch.ops.gpusort.merge(a, b), torch.ops.gpusort.merge_with_indices(a, b)[1]]
        found += [torch.ops.gpusort.merge_by_key(a, a, b, b)[1], torch.ops.gpusort.sort_rows(x)[1]]
        found += [torch.ops.gpusort.merge_many(a, k), torch.ops.gpusort.merge_many_with_indices(a, k)[1]]
        found += [torch.ops.gpusort.co_rank(k, a, b)]
        return found

    x = make("zipf", (4, 33), torch.float32, device)
    a, b = two_sorted((20, 33), torch.float32, device)
    k = torch.tensor([0, 7, 20], device=device)
    found = least(x, a, b, k)
    order = torch.sort(x, stable=True)
    assert all(torch.equal(indices, order.indices) for indices in found[:7]) and torch.equal(found[7], order.values)
    for other in (torch.jit.script(least), torch.compile(least, fullgraph=True, backend="aot_eager")):
        more = other(x, a, b, k)
        assert len(more) == len(found) and all(torch.equal(p, q) for p, q in zip(found, more))
