"""Random single-bit flips and truncations of the files of a small store, with a judgement of each."""
