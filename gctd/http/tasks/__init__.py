"""Routes of tasks: lists, results, attempts and their logs."""
