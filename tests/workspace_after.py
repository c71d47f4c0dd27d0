"""What a call leaves in its workspace. It tells which way was taken where the device alone decides, and every way has the same launches."""

import gc

import torch


def words_left(call, workspace_bytes):
    """The first 64 words of 32 bits in the workspace of a call, and its results.

    torch's allocator makes a segment for each block of more than 20 MiB, and gives one that was freed to the next who asks for as much."""
    assert workspace_bytes > 20 * 2**20
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    results = call()
    reserved = torch.cuda.memory_reserved()
    block = torch.empty(workspace_bytes, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_reserved() == reserved, "this is no block that the call has freed"
    return block[:256].view(torch.int32).tolist(), results
