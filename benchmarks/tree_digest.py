"""A digest of what the results of a run depend on: the contents of csrc/, torch_gpusort/ and tests/. Standard library only."""

import hashlib
import pathlib
import sys

FOLDERS = ("csrc", "torch_gpusort", "tests")
IGNORED_SUFFIXES = {".so", ".o", ".pyc", ".pyd"}
IGNORED_FOLDERS = {"__pycache__", "build"}


def is_source(path, root):
    """Whether a file counts: no build products, no caches, no hidden files or folders."""
    parts = path.relative_to(root).parts
    return (
        path.is_file()
        and path.suffix not in IGNORED_SUFFIXES
        and not any(part in IGNORED_FOLDERS or part.startswith(".") for part in parts)
    )


def digest(root):
    """SHA-256 over relative path, length and content of every source file, in the order of their paths; the same on every machine."""
    root = pathlib.Path(root)
    files = [path for folder in FOLDERS if (root / folder).is_dir() for path in (root / folder).rglob("*") if is_source(path, root)]
    total = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.relative_to(root).as_posix()):
        content = path.read_bytes()
        total.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


if __name__ == "__main__":
    print(digest(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent))
