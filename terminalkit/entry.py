"""The first moment of a program. An interrupt ends it without a traceback, also before its modules are imported.

This module and its package import nothing that takes time.
"""

import signal


def enter(module: str) -> int:
    """Import a program's module, run its `main`, and return the exit code.

    While modules are imported, and at the end, SIGINT has the default effect of the system: the process ends, and a shell shows
    the exit code 130. In between `Program` of `terminalkit` reports an interrupt. If SIGINT is ignored, it stays ignored.
    """
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from importlib import import_module  # noqa: PLC0415 - after the handler is set

    main = import_module(module).main
    try:
        code: int = main()
    finally:
        if interruptible:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code
