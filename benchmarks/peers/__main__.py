"""`python -m benchmarks.peers sm_90`: builds all peers ahead."""

import sys

from benchmarks.peers import build_all

for library in build_all(sys.argv[1] if len(sys.argv) > 1 else "sm_90"):
    print(library)
