"""The shared libraries: stable ABI only, no Python, clear words when one is missing, and an import that leaves CUDA alone."""

import copy
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import pytest
import torch

import torch_gpusort as gs

PACKAGE = pathlib.Path(gs.__file__).resolve().parent
LIBRARIES = sorted(PACKAGE.glob("_C*.so"))


def run_python(code, *, path, **environment):
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(path), *(p for p in sys.path if p and pathlib.Path(p).resolve() != PACKAGE.parent)]),
        **environment,
    }
    return subprocess.run([sys.executable, "-c", code], env=env, cwd=str(path), capture_output=True, text=True, timeout=120)


def undefined_symbols(library):
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("needs nm, from binutils")
    lines = subprocess.run([nm, "-D", "--undefined-only", str(library)], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split()[-1] for line in lines if line.strip()]


def test_the_cpu_library_is_there():
    assert PACKAGE / "_C.so" in LIBRARIES


@pytest.mark.gpu
def test_the_cuda_library_is_there():
    assert PACKAGE / "_C_cuda.so" in LIBRARIES


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda p: p.name)
def test_no_unstable_torch_symbols(library):
    """What the binary takes from torch are C functions. A mangled at::, c10:: or torch:: name would tie it to one torch release."""
    symbols = undefined_symbols(library)
    assert any(symbol.startswith(("aoti_torch_", "torch_")) for symbol in symbols), "takes nothing from torch: is this the right file?"
    forbidden = [
        s
        for s in symbols
        if s.startswith("_Z") and any(space in s for space in ("N2at", "NK2at", "N3c10", "NK3c10", "N5torch", "NK5torch", "N5caffe"))
    ]
    assert not forbidden


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda p: p.name)
def test_no_python_and_no_shared_cudart(library):
    symbols = undefined_symbols(library)
    assert not [s for s in symbols if s.startswith(("Py", "_Py"))]
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("needs readelf, from binutils")
    dynamic = subprocess.run([readelf, "-d", str(library)], capture_output=True, text=True, check=True).stdout
    needed = [line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line]
    assert not [n for n in needed if n.startswith(("libpython", "libtorch_python", "libcudart", "libc10"))], needed
    assert any(n.startswith("libtorch_cpu") for n in needed), needed
    if library.name == "_C.so":
        assert not [n for n in needed if "cuda" in n], "the CPU library must load where torch has no CUDA"


def test_schemas_alias_nothing():
    """Functional ops: no argument is written, no result shares memory with one."""
    for name in torch._C._dispatch_get_all_op_names():
        if name.startswith("gpusort::"):
            op, _, overload = name.removeprefix("gpusort::").partition(".")
            schema = getattr(getattr(torch.ops.gpusort, op), overload or "default")._schema
            assert not any(argument.alias_info for argument in (*schema.arguments, *schema.returns)), name
            assert not schema.is_mutable, name


def test_every_op_has_a_kernel_for_the_cpu_and_the_gpu():
    keys = ["CPU"] + (["CUDA"] if any(p.name == "_C_cuda.so" for p in LIBRARIES) and torch.version.cuda else [])
    for name in torch._C._dispatch_get_all_op_names():
        if name.startswith("gpusort::") and not name.startswith("gpusort::_"):
            for key in keys:
                assert torch._C._dispatch_has_kernel_for_dispatch_key(name, key), f"{name} has no kernel for {key}"
            assert not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"), name


def test_a_missing_library_is_explained(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "torch_gpusort", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    result = run_python("import torch_gpusort", path=tmp_path)
    assert result.returncode != 0 and "ImportError" in result.stderr
    for words in (str(tmp_path / "torch_gpusort" / "_C.so"), torch.__version__, "setup.py", "pip install"):
        assert words in result.stderr, f"{words!r} is not in: {result.stderr[-1500:]}"


def test_a_broken_library_is_explained(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "torch_gpusort", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (tmp_path / "torch_gpusort" / "_C.so").write_bytes(b"not a library")
    result = run_python("import torch_gpusort", path=tmp_path)
    assert result.returncode != 0 and "ImportError" in result.stderr and "_C.so" in result.stderr and torch.__version__ in result.stderr


def test_without_the_cuda_library_the_cpu_works(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "torch_gpusort", ignore=shutil.ignore_patterns("_C_cuda.so", "__pycache__"))
    result = run_python(
        "import torch, torch_gpusort; print(torch_gpusort.__file__); print(torch_gpusort.sort(torch.tensor([2, 1])).values.tolist())",
        path=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert str(tmp_path) in result.stdout and "[1, 2]" in result.stdout


@pytest.mark.gpu
def test_without_the_cuda_library_a_gpu_tensor_is_refused_in_words(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "torch_gpusort", ignore=shutil.ignore_patterns("_C_cuda.so", "__pycache__"))
    result = run_python("import torch, torch_gpusort; torch_gpusort.sort(torch.tensor([2, 1], device='cuda'))", path=tmp_path)
    assert result.returncode != 0 and "CUDA" in result.stderr


def test_import_leaves_cuda_alone():
    code = """
import ctypes, sys, torch
try:
    driver = ctypes.CDLL("libcuda.so.1")
except OSError:
    driver = None
count = ctypes.c_int()
before = driver and driver.cuDeviceGetCount(ctypes.byref(count))   # an error code until someone calls cuInit
import torch_gpusort
torch_gpusort.sort(torch.tensor([2, 1]))
torch_gpusort.merge(torch.tensor([2.0]), torch.tensor([1.0]))
after = driver and driver.cuDeviceGetCount(ctypes.byref(count))
assert not torch.cuda.is_initialized(), "torch's CUDA state was started"
assert before == after, "the driver was initialised"
"""
    result = run_python(code, path=PACKAGE.parent)
    assert result.returncode == 0, result.stderr


def test_fork_after_import_works():
    code = """
import os, torch, torch_gpusort
torch_gpusort.sort(torch.rand(100_000))
child = os.fork()
if child == 0:
    ok = torch_gpusort.sort(torch.tensor([3, 1, 2])).values.tolist() == [1, 2, 3]
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    result = run_python(code, path=PACKAGE.parent)
    assert result.returncode == 0, result.stderr


def test_results_can_be_pickled_and_copied(device):
    result = gs.sort(torch.tensor([2, 1], device=device))
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result)):
        assert type(other) is type(result) and other.values.tolist() == [1, 2] and other.indices.tolist() == [1, 0]


def test_build_info():
    lines = dict(line.split("=", 1) for line in torch.ops.gpusort._build_info().splitlines() if line)
    assert lines and all(lines.values()), lines


def test_the_public_names_are_documented():
    for name in gs.__all__:
        text = getattr(gs, name).__doc__
        assert text, f"{name} has no docstring"
        assert ">>>" in text or isinstance(getattr(gs, name), type), f"{name} has no example"
    assert isinstance(gs.__version__, str)


def test_results_travel_through_pickle():
    x = torch.tensor([2, 1])
    for result in (gs.merge(x[:1], x[1:], return_indices=True), gs.sort_rows(x[:, None]), gs.explain(x)):
        again = pickle.loads(pickle.dumps(result))
        assert type(again) is type(result) and str(again) == str(result)


def test_docstring_examples_run():
    import doctest

    for module in {sys.modules[getattr(gs, name).__module__] for name in gs.__all__}:
        outcome = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
        assert outcome.attempted > 0 and outcome.failed == 0, module
