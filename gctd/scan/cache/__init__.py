"""The cache directory of a worker: clones, modules, builds."""
