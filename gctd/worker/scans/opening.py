"""The work of a worker, opened with its settings: git, hosts, caches, sandbox, toolchains."""

from __future__ import annotations

from gctd.broker.blobs import Blobs
from gctd.scan.cache.directory import CacheLimits
from gctd.scan.errors import NoGo
from gctd.scan.git.checkout import Checkouts
from gctd.scan.git.commands import Git
from gctd.scan.go.pinned import PinnedGo
from gctd.scan.go.toolchain import find_toolchain
from gctd.scan.go.toolchains import ToolchainBounds, Toolchains
from gctd.scan.isolation.sandbox import find_sandbox
from gctd.scan.policy import git_settings, module_downloads, repo_policy
from gctd.settings import Settings, size
from gctd.worker.scans.metadata import open_hosts
from gctd.worker.scans.scan_run import ScanTools
from gctd.worker.scans.scanning import Scanning


async def open_work(settings: Settings, blobs: Blobs) -> Scanning:
    """Open the work of a worker with these settings. Remains of an earlier process in the cache are removed first.

    Raises NoToolchain, NoSandbox.
    """
    policy = repo_policy(settings)
    git = Git(git_settings(settings))
    hosts = open_hosts(settings, git.settings)
    checkouts = Checkouts(settings.cache_directory, git, cache_limits=cache_limits(settings), parse_url=policy.parse_url)
    await checkouts.upkeep()
    sandbox = await find_sandbox(settings.sandbox, settings.cache_directory, takes_group=True)
    toolchains = await open_toolchains(settings)
    return Scanning(
        ScanTools(
            settings=settings,
            checkouts=checkouts,
            toolchains=toolchains,
            downloads=module_downloads(settings),
            blobs=blobs,
            hosts=hosts,
            sandbox=sandbox,
        )
    )


def cache_limits(settings: Settings) -> CacheLimits:
    """Return the limits of the cache that the settings give."""
    return CacheLimits(
        clones=size(settings.clones_max_bytes),
        builds=size(settings.builds_max_bytes),
        keep_free=size(settings.keep_free_bytes),
    )


async def open_toolchains(settings: Settings) -> Toolchains:
    """Return the toolchains of this host. If it has no Go, the first job that needs one downloads it. Raises NoToolchain."""
    directory, downloads, pinned = settings.cache_directory / "toolchains", module_downloads(settings), None
    try:
        host = await find_toolchain(settings.cache_directory)
    except NoGo:
        if settings.go_toolchains == "local" or not PinnedGo.available():
            raise
        pinned = PinnedGo(directory, downloads)
        host = pinned.toolchain
    bounds = ToolchainBounds(max_bytes=size(settings.toolchains_max_bytes), fetch=settings.go_toolchains == "auto")
    return Toolchains(host, directory, downloads, bounds, pinned=pinned)
