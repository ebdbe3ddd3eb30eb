"""`python -m graphql_fn` is the program `graphql-fn`."""

import sys

from graphql_fn.cli import main

sys.exit(main())
