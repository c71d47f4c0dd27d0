"""The two commands of the package: `python -m torch_gpusort demo` and `info`."""

import os
import pathlib
import subprocess
import sys

import pytest
import torch

import torch_gpusort as gs

ROOT = pathlib.Path(gs.__file__).resolve().parent.parent


def run(*arguments, code=None, **environment):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *(p for p in sys.path if p)]), **environment}
    command = [sys.executable, *(("-c", code) if code else ("-m", "torch_gpusort")), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=280)


def test_info():
    result = run("info")
    assert result.returncode == 0, result.stderr
    for words in (gs.__version__, torch.__version__, "_C.so"):
        assert words in result.stdout


@pytest.mark.gpu
def test_info_names_the_gpu():
    result = run("info")
    assert torch.cuda.get_device_name() in result.stdout and "_C_cuda.so" in result.stdout


def test_demo_on_the_cpu():
    result = run("demo", CUDA_VISIBLE_DEVICES="")
    assert result.returncode == 0, result.stderr + result.stdout
    assert "equal" in result.stdout and "cpu" in result.stdout.lower()


@pytest.mark.gpu
def test_demo_on_the_gpu():
    result = run("demo")
    assert result.returncode == 0, result.stderr + result.stdout
    assert "equal" in result.stdout and torch.cuda.get_device_name().split()[-1] in result.stdout + run("info").stdout


# The demo's own checks have to catch wrong answers: each of these breaks one function in a way that a careless comparison would miss.
SABOTAGE = {
    "sort": """
def broken(x, *arguments, **options):
    result = real(x, *arguments, **options)
    if x.numel() > 1:
        result.indices.view(-1)[-2:] = result.indices.view(-1)[-2:].flip(0)
    return result
""",
    "merge_many": """
def broken(runs, **options):
    result = real(runs, **options)
    (result if isinstance(result, torch.Tensor) else result.values)[-1:] += 1
    return result
""",
}


@pytest.mark.parametrize("name", SABOTAGE)
def test_a_wrong_result_exits_one(name):
    code = f"""
import runpy, sys, torch
import torch_gpusort as gs
real = gs.{name}
{SABOTAGE[name]}
gs.{name} = broken
for module in list(sys.modules.values()):
    if getattr(module, "__name__", "").startswith("torch_gpusort") and getattr(module, "{name}", None) is real:
        setattr(module, "{name}", broken)
sys.argv = ["torch_gpusort", "demo"]
runpy.run_module("torch_gpusort", run_name="__main__")
"""
    result = run(code=code, CUDA_VISIBLE_DEVICES="")
    assert result.returncode == 1, f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"
    assert "equal" in result.stdout and "NO" in result.stdout and "Traceback" not in result.stderr, (
        "the exit status is that of some other failure"
    )


def test_a_wrong_command_exits_two_with_the_commands_listed():
    result = run("frobnicate")
    assert result.returncode == 2 and "demo" in result.stderr and "info" in result.stderr
