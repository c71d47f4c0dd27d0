"""python -m torch_gpusort"""

import sys

from .cli import main

sys.exit(main())
