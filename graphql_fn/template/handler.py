"""The function, as the OpenFaaS template python3-http calls it."""  # noqa: INP001 - it lies in a folder of the platform's

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # graphql_fn is in the folder of this file

from graphql_fn.handlers.platform import handle

__all__ = ["handle"]
