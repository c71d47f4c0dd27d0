"""What tests of refusals share: the check of an error's type and text, and that nothing is left behind."""

import gc

import pytest
import torch
from cases import make
from reference import assert_stable_sort

import torch_gpusort as gs

ONE_TENSOR = {"sort": gs.sort, "argsort": gs.argsort, "sort_keys": gs.sort_keys, "radix_sort": gs.radix_sort}


@pytest.fixture(autouse=True)
def nothing_is_left_behind(request):
    """After the test: no memory held, no CUDA error pending, and the library sorts."""
    if "device" not in request.fixturenames or request.getfixturevalue("device").type != "cuda":
        yield
        return
    torch.cuda.synchronize()
    gc.collect()
    held = torch.cuda.memory_allocated()
    yield
    gc.collect()
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == held, "memory is still held after the errors"
    x = make("uniform", 5000, torch.float32, "cuda")
    assert_stable_sort(x, gs.sort(x))
    torch.cuda.synchronize()


def refused(error, call, *words):
    """`call` raises `error`, and the text holds every one of `words`."""
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    for word in words:
        assert str(word).lower() in text.lower(), f"{word!r} is not in the message: {text}"
    assert not any(prefix in text for prefix in ("IndexError:", "TypeError:", "ValueError:", "RuntimeError:")), (
        f"the type's name is in the text: {text}"
    )
