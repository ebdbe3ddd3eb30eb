"""Commands for builds: the gate, in a working copy too, and profiles that a build server made."""
