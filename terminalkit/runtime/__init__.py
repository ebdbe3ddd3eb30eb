"""Running a program: event loop, coroutine, serving, from the command line to the exit code."""
