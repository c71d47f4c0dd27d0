"""What an eager call of a small sort costs the host: microseconds per call, ours and torch's, written to results/<gpu>/host_overhead.json.

The host's clock around a batch of calls without synchronisation; the device is idle before each batch, and batches are short enough that
its queue never fills, so that the host never waits for it. Median over batches.

    python -m benchmarks.host_overhead [--length 1024]
"""

import argparse
import gc
import importlib
import pathlib
import sys
import time

import torch

from benchmarks import harness, result_file

CALLS_PER_BATCH = 100
BATCHES = 51


def host_us(call, synchronize, batches=BATCHES, calls=CALLS_PER_BATCH, clock=time.perf_counter):
    """(median microseconds of the host per call, spread over the batches), after one batch of warm-up."""
    samples = []
    gc_was_on = gc.isenabled()
    gc.disable()
    try:
        for _ in range(batches + 1):
            synchronize()
            start = clock()
            for _ in range(calls):
                call()
            samples.append((clock() - start) * 1e6 / calls)
    finally:
        if gc_was_on:
            gc.enable()
    synchronize()
    return harness.summarise(samples[1:])


def calls_on(library, keys):
    """(call, implementation, function): what is measured, each with the name it has in the file."""
    found = []
    if hasattr(library, "sort"):
        found.append(("sort", "gpusort", lambda: library.sort(keys)))
        found.append(("sort, raw op", "gpusort", lambda: torch.ops.gpusort.sort(keys)))
    if hasattr(library, "sort_keys"):
        found.append(("sort_keys", "gpusort", lambda: library.sort_keys(keys)))
    if hasattr(library, "merge"):
        found.append(("merge", "gpusort", lambda: library.merge(keys, keys)))
    found.append(("sort", "torch", lambda: torch.sort(keys, stable=True)))
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.host_overhead", description="Host microseconds of an eager call.")
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--output", type=pathlib.Path, help="result file (default benchmarks/results/<gpu>/host_overhead.json)")
    options = parser.parse_args(arguments)
    on_gpu = torch.device(options.device).type == "cuda"
    if on_gpu and not torch.cuda.is_available():
        print("no CUDA device", file=sys.stderr)
        return 2
    library = importlib.import_module("torch_gpusort")
    environment = result_file.environment(options.device)
    keys = torch.randn(options.length, device=options.device).sort().values
    rows = []
    for call, implementation, function in calls_on(library, keys):
        us, spread = host_us(function, torch.cuda.synchronize if on_gpu else lambda: None)
        row = {"call": call, "impl": implementation, "dtype": "float32", "length": options.length}
        rows.append(row | {"host_us": round(us, 2), "spread": round(spread, 4)})
        print(f"{implementation:8} {call:14} float32 {options.length}: {us:7.2f} us per call on the host, spread {spread:.1%}")
    path = options.output or (result_file.default_path(environment["gpu"], "host_overhead.json") if on_gpu else None)
    if path:
        result_file.write(path, {"environment": environment, "rows": rows})
        print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
