"""Outputs to a thread: the merge kernels at 1 to 32 of them, 2 x 2^20 to 2 x 2^26 sorted float32 keys, cuts included.

python -m benchmarks.merge_coarsening                  # needs nvcc; to results/<gpu>/merge_coarsening.json
python -m benchmarks.merge_coarsening --print h200     # the committed table

The kernels are the product's, in other shapes than it uses (merge_coarsening.cu): what a thread merges by itself it takes from registers
and shared memory, so few outputs to a thread mean more searches and barriers for each, and many mean fewer threads to hide their time.
"""

import argparse
import ctypes
import json
import pathlib
import sys

import torch

from benchmarks import cases, data, harness, native, operations, result_file

SIZES = (20, 24, 26)
KERNELS = ("basic", "tiled", "circular")
OUTPUTS = (1, 2, 4, 8, 16, 32)
HERE = pathlib.Path(__file__).resolve().parent


def library(device):
    sources = [path for path in sorted((native.ROOT / "csrc").rglob("*")) if path.suffix in (".h", ".cuh")]
    return native.load(native.build(HERE / "merge_coarsening.cu", sources, native.architecture_of(device), "variants"))


def merge_with(function, kernel, outputs):
    """A call that merges its two inputs with `outputs` outputs to a thread of `kernel`."""

    def call(a, b):
        out = a.new_empty(a.numel() + b.numel())
        cuts = a.new_empty(out.numel() // outputs + 1, dtype=torch.int64)
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b)]
        results = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (out, cuts)]
        stream = ctypes.c_void_p(torch.cuda.current_stream(a.device).cuda_stream)
        count = torch.cuda.get_device_properties(a.device).multi_processor_count
        error = function(KERNELS.index(kernel), outputs, *pointers, ctypes.c_int64(a.numel()), *results, count, stream)
        if error:
            raise RuntimeError(f"{kernel} with {outputs} outputs to a thread returned CUDA error {error}")
        return (out,)

    return call


def measure_size(size, function, device):
    timing = "graph" if size <= 20 else "events"
    case = cases.Case("coarsening", "M", "merge", "merge", "float32", (1 << size, 1 << size), "two_sorted", {}, timing, 0.0)
    inputs = data.make_inputs(case, device, 1)
    reference = harness.as_tensors(operations.with_torch(case)(*inputs))
    for kernel in KERNELS:
        for outputs in OUTPUTS:
            result = harness.measure(merge_with(function, kernel, outputs), [inputs], timing=timing, device=device, budget_s=0.02)
            equal = harness.same_result(result.outputs, reference)
            yield {"log2": size, "kernel": kernel, "outputs": outputs, "us": round(result.us, 2), "equal": equal}


def table(content):
    """Markdown: microseconds by kernel, size and outputs to a thread."""
    lines = ["| kernel | elements a side | " + " | ".join(map(str, OUTPUTS)) + " |", "|---|---|" + "---:|" * len(OUTPUTS)]
    found = {}
    for row in content["rows"]:
        found.setdefault((row["kernel"], row["log2"]), []).append(f"{row['us']:.1f}")
    lines += [f"| {kernel} | 2^{size} | {' | '.join(times)} |" for (kernel, size), times in sorted(found.items())]
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.merge_coarsening", description="Merge kernels by outputs to a thread.")
    parser.add_argument("--sizes", type=lambda text: tuple(map(int, text.split(","))), default=SIZES, help="log2 of the elements a side")
    parser.add_argument("--output", help="result file (default benchmarks/results/<gpu>/merge_coarsening.json)")
    parser.add_argument("--print", metavar="GPU", help="print the table of results/GPU/merge_coarsening.json and stop")
    options = parser.parse_args(arguments)
    if options.print:
        print(table(json.loads((native.ROOT / "benchmarks" / "results" / options.print / "merge_coarsening.json").read_text())))
        return 0
    if not torch.cuda.is_available():
        print("no CUDA device: these are kernels of the GPU", file=sys.stderr)
        return 2
    device = "cuda"
    function = library(device).merge_with_outputs
    rows = [row for size in options.sizes for row in measure_size(size, function, device)]
    content = {"environment": result_file.environment_with_copy_rate(device), "rows": rows}
    print(table(content))
    path = result_file.path_for(options.output, device, "merge_coarsening.json")
    if path:
        result_file.write(path, content)
    wrong = [row for row in rows if not row["equal"]]
    print(f"not equal: {wrong}" if wrong else "all equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
