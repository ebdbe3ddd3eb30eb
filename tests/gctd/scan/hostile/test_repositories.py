"""Files of a repository that git, Go or a C compiler would obey: no canary is touched, no secret is read, no listener is asked.

Each probe is the smallest repository of its kind. CANARY is a file that must not come to be, SECRET a file of the host that must
not be read, and URL the address of a listener on loopback that must not be asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import attrs
import pytest

from gctd.domain.repo.config import ProjectConfig
from gctd.worker.work import WorkFailed
from tests.gctd.scan.hostile.conftest import Host, attacking, task
from tests.support.tracker import go_repo as gorepo

WORDS = "canary-of-a-secret"
TOUCH = "#!/bin/sh\ntouch CANARY\n"


@pytest.fixture(params=["namespaces", pytest.param("bubblewrap", marks=pytest.mark.long)])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of sandbox: programs of test_kernel.py and test_sandbox.py have each one."""
    kind: str = request.param
    return kind


@attrs.frozen
class Bait:
    """The places that a probe must not reach."""

    canary: Path
    secret: Path
    url: str
    asked: list[str]

    def put(self, text: str) -> str:
        """A text with the places in it."""
        return text.replace("CANARY", str(self.canary)).replace("SECRET", str(self.secret)).replace("URL", self.url)


@pytest.fixture
async def bait(tmp_path: Path) -> AsyncIterator[Bait]:
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "secret"
    secret.write_text(f"{WORDS}\n")
    asked: list[str] = []

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(str(writer.get_extra_info("peername")))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Bait(outside / "canary", secret, f"http://127.0.0.1:{port}", asked)


def cgo(*lines: str, more: str = "") -> dict[str, str]:
    """A file with a preamble for the C compiler."""
    preamble = "".join(f"// {line}\n" for line in lines)
    return {"c.go": f'package hostile\n\n{preamble}import "C"\n\n{more}'}


PACKAGES: dict[str, Mapping[str, str]] = {
    "plugin": cgo("#cgo CFLAGS: -fplugin=CANARY.so", "int one(void);"),
    "linker-output": cgo("#cgo LDFLAGS: -Wl,-Map=CANARY", "static int one(void) { return 1; }", more="var _ = C.one()\n"),
    "linker-wrapper": cgo("#cgo LDFLAGS: -wrapper,CANARY -B.", "static int one(void) { return 1; }", more="var _ = C.one()\n"),
    "include": cgo('#include "SECRET"'),
    "include-of-a-folder": cgo("#cgo CFLAGS: -I/etc -include SECRET", "int one(void);"),
    "file-embedded-by-the-assembler": {
        **cgo("int one(void);", more="var _ = C.one()\n"),
        "c.c": 'int one(void) { __asm__(".incbin \\"SECRET\\""); return 1; }\n',
    },
    "pkg-config": {
        **cgo("#cgo pkg-config: hostile"),
        "pkg-config": TOUCH,
        "hostile.pc": "Name: hostile\nVersion: 1\nDescription: x\nLibs: -Wl,-Map=CANARY\n",
    },
    "compiler": {**cgo("int one(void);"), "gcc": TOUCH, "cc": TOUCH, "bin/gcc": TOUCH},
    "include-of-go-s-assembler": {"a.s": '#include "SECRET"\n', "stub.go": "package hostile\n\nfunc stub()\n"},
    "embedded-file-outside": {
        "e.go": 'package hostile\n\nimport _ "embed"\n\n//go:embed ../../../SECRET\nvar text string\n\nvar _ = text\n'
    },
    "generator": {"g.go": "package hostile\n\n//go:generate touch CANARY\n"},
}
"""Files of each package, besides one with a test. The packages are one module, which builds each by itself."""

HARMLESS: Mapping[str, str] = {
    "go.env": "GOFLAGS=-toolexec=CANARY\n",
    ".config/go/env": "GOFLAGS=-toolexec=CANARY\n",
    "AppData/go/env": "GOFLAGS=-exec=CANARY\n",
    **dict.fromkeys(
        ("toolexec", "gcc", "cc", "pkg-config", "hooks/post-checkout", ".githooks/post-checkout", "post-checkout"), TOUCH
    ),
    ".gitattributes": "* filter=evil diff=evil\n",
    ".gitconfig": '[filter "evil"]\n\tsmudge = touch CANARY\n\tclean = touch CANARY\n\tprocess = touch CANARY\n\trequired\n',
    "bare/HEAD": "ref: refs/heads/main\n",
    "bare/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch CANARY\n",
    "bare/objects/info/alternates": "SECRET\n",
    "bare/refs/heads/main": "0" * 40 + "\n",
    **gorepo.under("bare", gorepo.with_test("bare", "One()")),
}
"""Files that nothing obeys: tool wrappers, programs by the names of tools, hooks, filters, an embedded bare repository."""

FILES: dict[str, Mapping[str, str]] = {
    "nothing that is obeyed": HARMLESS,
    "workspace outside": {"go.work": "go 1.21\n\nuse .\nuse ../../..\nuse SECRET\n"},
    "replacement outside": {
        "go.mod": gorepo.module("example.com/hostile")
        + "\nrequire example.com/other v1.0.0\n\nreplace example.com/other => SECRET\n"
    },
    "toolchain": {"go.mod": "module example.com/hostile\n\ngo 1.21\n\ntoolchain go1.99.0\n"},
    "tool line": {"go.mod": "module example.com/hostile\n\ngo 1.24\n\ntool example.com/hostile/cmd/touch\n"},
    "vendored code that is not the module's": {
        "go.mod": "module example.com/hostile\n\ngo 1.21\n\nrequire example.com/other v1.0.0\n",
        "vendor/modules.txt": "# example.com/other v1.0.0\n## explicit\nexample.com/other\n",
        "vendor/example.com/other/o.go": 'package other\n\nimport "os"\n\nfunc init() { os.WriteFile("CANARY", nil, 0o600) }\n',
        "v.go": 'package hostile\n\nimport _ "example.com/other"\n',
    },
    "module on the local network": {
        "go.mod": "module example.com/hostile\n\ngo 1.21\n\nrequire 127.0.0.1/other v1.0.0\n",
        "m.go": 'package hostile\n\nimport _ "127.0.0.1/other"\n',
    },
    "large files": {
        ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
        ".lfsconfig": "[lfs]\n\turl = URL\n\tconcurrenttransfers = 1\n",
        "a.bin": f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12\n",
    },
}
"""Files of each probe, besides a module with one test."""


async def scan(host: Host, repo: gorepo.GoRepo, config: ProjectConfig | None = None) -> str:
    """Scan a repository; all that the log, or the reason of a failure, has."""

    async def on_stage(stage: str, progress: object = None) -> None:
        """Not of interest."""

    lines: list[str] = []
    try:
        await host.scanning.scan(task(repo, config or ProjectConfig()), on_stage, lines.append)
    except WorkFailed as error:
        lines.append(str(error))
    return "\n".join(lines)


def untouched(bait: Bait, log: str) -> None:
    """Fail if the probe reached the bait, and name the canary."""
    assert [path.name for path in bait.canary.parent.iterdir()] == [bait.secret.name]
    assert WORDS not in log
    assert bait.secret.read_text() == f"{WORDS}\n"
    assert bait.asked == []


def put(repo: gorepo.GoRepo, bait: Bait, files: Mapping[str, str]) -> None:
    """Write files with the places of the bait in them, and commit them."""
    repo.write({path: bait.put(text) for path, text in files.items()})
    for path, text in files.items():
        if text.startswith("#!"):
            (repo.path / path).chmod(0o755)
    repo.commit()


@pytest.mark.real
@pytest.mark.parametrize("name", list(FILES))
async def test_files_of_a_repository_reach_nothing_outside(name: str, place: Path, host: Host, bait: Bait) -> None:
    repo = attacking(place, "os.Getpid()", "os")
    put(repo, bait, FILES[name])
    untouched(bait, await scan(host, repo))


@pytest.mark.real
async def test_packages_reach_nothing_outside(place: Path, host: Host, bait: Bait) -> None:
    """Each package has a separate canary. It is built and tested, or fails, by itself."""
    repo = attacking(place, "os.Getpid()", "os")
    for name, files in PACKAGES.items():
        mine = {path: text.replace("CANARY", f"CANARY-{name}") for path, text in files.items()}
        put(repo, bait, gorepo.under(name, {**gorepo.with_test("hostile", "os.Getpid()", "os"), **mine}))
    log = await scan(host, repo)
    untouched(bait, log)
    unnamed = [name for name in PACKAGES if f"example.com/hostile/{name}" not in log]
    assert not unnamed, "go has tried each package"


def submodule(url: str, *more: str) -> Callable[[gorepo.GoRepo, Bait], None]:
    """A submodule with this address."""

    def add(repo: gorepo.GoRepo, bait: Bait) -> None:
        lines = [f"\turl = {bait.put(url)}", *(f"\t{bait.put(line)}" for line in more)]
        repo.write({".gitmodules": "\n".join(['[submodule "sub"]', "\tpath = sub", *lines, ""])})
        repo.git("add", "--all")
        repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.head()},sub")
        repo.git("commit", "--quiet", "--message", "submodule")

    return add


def link(target: str) -> Callable[[gorepo.GoRepo, Bait], None]:
    """Links to a place outside, as a source, as data that Go embeds, and as a folder."""

    def add(repo: gorepo.GoRepo, bait: Bait) -> None:
        place = bait.put(target)
        for name in ("linked.go", "linked.txt", "linked"):
            (repo.path / name).symlink_to(place)
        repo.write({"e.go": 'package hostile\n\nimport _ "embed"\n\n//go:embed linked.txt\nvar text string\n\nvar _ = text\n'})
        repo.commit()

    return add


COMMITS: dict[str, Callable[[gorepo.GoRepo, Bait], None]] = {
    "submodule that runs a program": submodule("ext::touch CANARY"),
    "submodule with an update command": submodule("../other", "update = !touch CANARY"),
    "submodule by http on loopback": submodule("URL/sub"),
    "submodule whose address is an option": submodule("--upload-pack=touch CANARY"),
    "links": link("SECRET"),
    "links to a folder": link("/etc"),
}


@pytest.mark.real
@pytest.mark.parametrize("name", list(COMMITS))
async def test_entries_of_a_commit_reach_nothing_outside(name: str, place: Path, host: Host, bait: Bait) -> None:
    repo = attacking(place, "os.Getpid()", "os")
    COMMITS[name](repo, bait)
    untouched(bait, await scan(host, repo, ProjectConfig(submodules=True)))


def test_there_are_probes_of_every_kind() -> None:
    assert len(PACKAGES) + len(HARMLESS) + len(FILES) + len(COMMITS) >= 40
