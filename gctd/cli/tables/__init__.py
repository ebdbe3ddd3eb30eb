"""Tables of repositories, tasks, workers and analyses."""
