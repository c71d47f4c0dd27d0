"""What the order of NaN and of the zeros costs: a sort of floating-point keys beside a sort of the same bits as unsigned integers.

    python -m benchmarks.order_cost                # 2^26, to results/<gpu>/order_cost.json
    python -m benchmarks.order_cost --device cpu --log2 10

The keys are positive and no NaN, so both sorts give the same result and every digit is spread in the same way; what differs is the code
that a key is ordered by. The two are timed in turns, and the least of the medians counts.
"""

import argparse
import sys

import torch

from benchmarks import harness, result_file

UNSIGNED = {torch.float32: torch.uint32, torch.float64: torch.uint64, torch.float16: torch.uint16, torch.bfloat16: torch.uint16}
TURNS = 5


def positive_keys(count, dtype, device):
    """Keys of all positive finite bit patterns alike, so that every digit is random."""
    infinity = {torch.float32: 0x7F80_0000, torch.float64: 0x7FF0 << 48, torch.float16: 0x7C00, torch.bfloat16: 0x7F80}[dtype]
    bits = torch.randint(0, infinity, (count,), device=device, generator=torch.Generator(device).manual_seed(1))
    return bits.to(harness.BITS[torch.empty((), dtype=dtype).element_size()]).view(dtype)


def measure(library, operation, dtype, count, device):
    """The row of one operation and dtype."""
    keys = positive_keys(count, dtype, device)
    raw = keys.view(UNSIGNED[dtype])
    call = getattr(library, operation)
    turns = [[harness.measure(call, [(side,)], device=device, budget_s=0.02, least=3) for side in (keys, raw)] for _ in range(TURNS)]
    ours, plain = (min(turn[side].us for turn in turns) for side in (0, 1))
    outputs = [turns[-1][side].outputs for side in (0, 1)]
    bits = harness.BITS[keys.element_size()]
    equal = harness.same_bits(outputs[0][0].view(bits), outputs[1][0].view(bits)) and all(map(torch.equal, outputs[0][1:], outputs[1][1:]))
    name = str(dtype).removeprefix("torch.")
    return {
        "op": operation,
        "dtype": name,
        "us": round(ours, 2),
        "raw_us": round(plain, 2),
        "cost": round(ours / plain - 1, 4),
        "equal": equal,
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.order_cost", description="Floating-point keys beside raw bits.")
    parser.add_argument("--log2", type=int, default=26)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--output", help="result file (default benchmarks/results/<gpu>/order_cost.json on a GPU)")
    options = parser.parse_args(arguments)
    import torch_gpusort

    rows = []
    for operation in ("sort", "sort_keys"):
        for dtype in UNSIGNED:
            rows.append(measure(torch_gpusort, operation, dtype, 1 << options.log2, options.device))
            print("{op:9} {dtype:8} {us:9.1f} us, raw bits {raw_us:9.1f}, cost {cost:+.1%}, equal {equal}".format(**rows[-1]), flush=True)
    environment = result_file.environment(options.device, None)
    path = result_file.path_for(options.output, options.device, "order_cost.json")
    if path:
        result_file.write(path, {"environment": environment, "rows": rows})
    return 0 if all(row["equal"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
