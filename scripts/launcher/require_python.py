"""Ends the program with one line if this Python is too old. Written for any Python 3. Import it first."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the version that runs this is not yet known to be the wanted one
    sys.exit("error: Python 3.11 or newer is needed, %s is %s" % (sys.executable, sys.version.split()[0]))  # noqa: UP031 - see above
