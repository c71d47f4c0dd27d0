"""The one-way house: core <- plan, core <- cuda, core <- cpu, all <- ops. Read from the #include lines."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
CSRC = ROOT / "csrc"
SOURCES = sorted(p for p in CSRC.rglob("*") if p.suffix in (".h", ".cuh", ".cpp", ".cu"))
MAY_INCLUDE = {
    "core": {"core"},
    "plan": {"core", "plan"},
    "cuda": {"core", "plan", "cuda"},
    "cpu": {"core", "plan", "cpu"},
    "ops": {"core", "plan", "cuda", "cpu", "ops"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def layer(path):
    return path.relative_to(CSRC).parts[0]


def includes(path):
    return INCLUDE.findall(path.read_text())


def resolve(path, name):
    for base in (path.parent, CSRC, ROOT):
        if (base / name).exists():
            return (base / name).resolve()
    pytest.fail(f"{path.relative_to(ROOT)} includes {name!r}, which is not there")


def test_the_layers_are_the_known_ones():
    assert SOURCES and {layer(p) for p in SOURCES} == set(MAY_INCLUDE)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(CSRC)))
def test_includes_go_one_way(path):
    for quote, name in includes(path):
        if quote == '"':
            target = resolve(path, name)
            assert layer(target) in MAY_INCLUDE[layer(path)], f"{layer(path)} may not include {name}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(CSRC)))
def test_who_sees_torch_and_cuda(path):
    system = [name for quote, name in includes(path) if quote == "<"]
    torch = [name for name in system if name.startswith(("torch/", "ATen/", "c10/"))]
    cuda = [name for name in system if name.startswith(("cuda", "cub/", "thrust/", "cooperative_groups"))]
    if layer(path) == "cpu":  # torch's thread pool, and nothing else of it
        assert all(
            name == "torch/csrc/stable/ops.h" or name.startswith(("torch/csrc/stable/c/", "torch/csrc/inductor/aoti_torch/c/"))
            for name in torch
        ), torch
    elif layer(path) != "ops":
        assert not torch, f"only ops sees torch: {torch}"
    assert not [name for name in torch if name.startswith(("ATen/", "c10/", "torch/torch.h", "torch/extension.h"))], "beyond the stable ABI"
    if layer(path) in ("core", "plan", "cpu"):
        assert not cuda, f"{layer(path)} is compiled without CUDA: {cuda}"


def test_core_is_headers_only():
    assert not [p for p in SOURCES if layer(p) == "core" and p.suffix != ".h"]


def code_of(path):
    """The file without comments and string literals."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', "", path.read_text(), flags=re.DOTALL)


def test_kernels_allocate_and_wait_for_nothing():
    for path in SOURCES:
        if layer(path) == "cuda":
            words = re.findall(
                r"\bcuda(?:Malloc\w*|Free\w*|DeviceSynchronize|StreamSynchronize|EventSynchronize|Memcpy|Memset)\s*\(", code_of(path)
            )
            assert not words, f"{path.relative_to(ROOT)}: {words}"


def test_one_place_lets_kernels_start_early():
    """It asks the device of the launch whether it can; no launcher decides that by itself."""
    users = [path.name for path in SOURCES if "cudaLaunchAttributeProgrammatic" in code_of(path)]
    assert users == ["dependent_launch.cuh"]


def test_no_device_wide_sort_of_others():
    """CUB's and thrust's device-wide sorts and torch.sort are peers, never the product."""
    for path in SOURCES:
        words = re.findall(
            r"\b(?:Device(?:Radix|Merge|Segmented\w*)Sort|DeviceMerge|thrust::|at::sort|aoti_torch_\w*sort\w*)\b", code_of(path)
        )
        assert not words, f"{path.relative_to(ROOT)}: {words}"
    for path in sorted((ROOT / "torch_gpusort").glob("*.py")):
        if path.name not in ("demo.py", "__main__.py", "cli.py"):  # the demo compares with torch
            code = re.sub(r'""".*?"""|#[^\n]*', "", path.read_text(), flags=re.DOTALL)
            words = re.findall(r"torch\.(?:sort|argsort|msort|topk)\(|aten\.(?:sort|argsort)|\.(?:arg)?sort\(", code)
            assert not [w for w in words if not w.startswith(".")], f"{path.name}: {words}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(CSRC)))
def test_manners(path):
    text = path.read_text()
    lines = text.splitlines()
    assert lines[0].startswith("//"), "the first line says what the file does"
    assert max(map(len, lines)) <= 140
    assert len(lines) <= 450
    assert not re.search(r"\b(?:TODO|FIXME|XXX|HACK)\b", text)
    if path.suffix in (".h", ".cuh"):
        assert "#pragma once" in text


@pytest.mark.parametrize("path", [p for p in SOURCES if layer(p) in ("core", "plan", "cpu")], ids=lambda p: str(p.relative_to(CSRC)))
def test_the_host_compiler_sees_no_pragma_of_nvcc(path):
    """nvcc hands the host's side of a function to the host's compiler, which warns of them: __CUDACC__ is defined there too."""
    before = [match.start() for match in re.finditer(r"(?m)^#pragma unroll", path.read_text())]
    assert all(path.read_text()[:at].endswith("#if defined(__CUDA_ARCH__)\n") for at in before)
