"""Every Go module of a checkout is found, none twice and none outside. A module that cannot be analysed has a reason."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from gctd.domain.repo.project import Project
from gctd.scan.errors import DiscoveryError, LimitExceeded
from gctd.scan.git.checkout import Checkouts
from gctd.scan.go.discovery import Bounds, discover, nested_modules
from tests.gctd.scan.conftest import url_of
from tests.support.tracker import go_repo as gorepo


def tree(root: Path, files: str | Mapping[str, str]) -> Path:
    for name, text in (gorepo.KINDS[files] if isinstance(files, str) else files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def found(root: Path, **options: object) -> dict[str, Project]:
    return {project.name: project for project in discover(root, **options)}  # type: ignore[arg-type]


def test_a_module_at_the_root(tmp_path: Path) -> None:
    assert discover(tree(tmp_path, "single")) == (
        Project(name=".", module_path="example.com/single", go_version="1.21", packages=1, has_tests=True),
    )


def test_modules_in_directories(tmp_path: Path) -> None:
    assert [project.name for project in discover(tree(tmp_path, "multi"))] == ["alpha", "beta"]


def test_members_of_a_workspace_are_known_as_such(tmp_path: Path) -> None:
    projects = found(tree(tmp_path, "workspace"))
    assert {name: project.in_workspace for name, project in projects.items()} == {"api": True, "lib": True, "tools": False}


def test_nested_modules_are_separate_projects_and_folders_that_go_skips_are_skipped(tmp_path: Path) -> None:
    """vendor, testdata, node_modules, names beginning with '.' or '_': no projects."""
    projects = found(tree(tmp_path, "nested"))
    assert list(projects) == [".", "plugin", "plugin/deep"]
    assert projects["."].packages == 2
    assert nested_modules(".", tuple(projects)) == ("plugin", "plugin/deep")
    assert nested_modules("plugin", tuple(projects)) == ("deep",)
    assert nested_modules("plugin/deep", tuple(projects)) == ()


@pytest.mark.real
def test_the_packages_of_a_module_are_those_that_go_lists(tmp_path: Path) -> None:
    tree(tmp_path, "nested")
    listed = subprocess.run(["go", "list", "./..."], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert found(tmp_path)["."].packages == len(listed.stdout.split())


def test_versions_and_toolchain_are_told(tmp_path: Path) -> None:
    text = 'module "example.com/q" // quoted\n\ngo 1.22.3\ntoolchain go1.23.1\n'
    project = found(tree(tmp_path, {"go.mod": text, "q.go": "package q\n"}))["."]
    assert (project.module_path, project.go_version, project.toolchain) == ("example.com/q", "1.22.3", "go1.23.1")
    assert (project.packages, project.has_tests) == (1, False)


def test_a_workspace_further_down_and_one_that_uses_its_parents(tmp_path: Path) -> None:
    """The nearest go.work at or above a module counts; it may use what is above it, inside the repository."""
    files = {
        "go.work": "go 1.21\nuse ./a\n",
        **gorepo.under("a", {"go.mod": gorepo.module("x/a"), **gorepo.tested("a")}),
        **gorepo.under("deep/b", {"go.mod": gorepo.module("x/b"), **gorepo.tested("b")}),
        "deep/go.work": "go 1.21\nuse (\n\t./b\n\t../a\n)\n",
    }
    projects = found(tree(tmp_path, files))
    assert {name: project.in_workspace for name, project in projects.items()} == {"a": True, "deep/b": True}


@pytest.mark.parametrize(
    "use", ["..", "../x", "/etc", "../../../go.mod", "a/../../x", '"../x"', "./a/../..", "C:/x", '"..\\\\x"', '"a\\x00b"']
)
@pytest.mark.parametrize("where", ["go.work", "nested/go.work"])
def test_a_workspace_that_leaves_the_repository_is_refused(tmp_path: Path, use: str, where: str) -> None:
    up = use if where == "go.work" else use.replace("..", "../..")
    with pytest.raises(DiscoveryError, match="outside the repository") as caught:
        discover(tree(tmp_path / "repo", {**gorepo.KINDS["single"], where: f"go 1.21\nuse {up}\n"}))
    assert caught.value.permanent


def test_a_workspace_that_cannot_be_read_is_left_aside(tmp_path: Path) -> None:
    projects = found(tree(tmp_path, {**gorepo.KINDS["workspace"], "go.work": 'use "unclosed\n'}))
    assert len(projects) == 3
    assert not any(project.in_workspace for project in projects.values())


def test_a_workspace_may_name_directories_that_are_not_there(tmp_path: Path) -> None:
    files = {**gorepo.KINDS["workspace"], "go.work": "go 1.21\nuse (\n\t./lib\n\t./gone\n)\n"}
    assert [name for name, project in found(tree(tmp_path, files)).items() if project.in_workspace] == ["lib"]


def test_a_module_where_nobody_looks_is_a_project_where_a_workspace_uses_it(tmp_path: Path) -> None:
    """Go looks into such a directory if a workspace names it, and into its subdirectories as usual."""
    files = {
        **gorepo.KINDS["nested"],
        "go.work": "go 1.21\nuse (\n\t.\n\t./_old\n\t./.hidden\n\t./testdata/ignored\n)\n",
        **gorepo.under("_old/more", {"go.mod": gorepo.module("x/more"), **gorepo.tested("more")}),
        **gorepo.under("_old/testdata", {"go.mod": gorepo.module("x/data"), **gorepo.tested("data")}),
    }
    projects = found(tree(tmp_path, files))
    assert list(projects) == [".", ".hidden", "_old", "_old/more", "plugin", "plugin/deep", "testdata/ignored"]
    assert [name for name, project in projects.items() if project.in_workspace] == [".", ".hidden", "_old", "testdata/ignored"]
    assert all(project.problem is None for project in projects.values())
    assert (projects["_old"].packages, projects["."].packages) == (1, 2)


def test_modules_with_names_that_look_alike_are_told_apart(tmp_path: Path) -> None:
    """`lib` is no parent of `lib2`, in the workspace or out of it."""
    names = ("lib", "lib2", "lib-x", "lib.d/inner", "lib/inner")
    files = {"go.work": "go 1.21\nuse ./lib\n"}
    for name in names:
        files |= gorepo.under(name, {"go.mod": gorepo.module(f"example.com/{name}"), **gorepo.tested("p")})
    projects = found(tree(tmp_path, files))
    assert set(projects) == set(names)
    assert [name for name, project in projects.items() if project.in_workspace] == ["lib"]
    assert all(project.packages == 1 for project in projects.values())
    assert nested_modules("lib", tuple(projects)) == ("inner",)
    assert nested_modules("lib2", tuple(projects)) == ()


@pytest.mark.parametrize(("target", "outside"), [("../x", True), ("/x", True), ("./lib", False), ("example.com/y v1.0.0", False)])
def test_a_workspace_that_replaces_a_module_by_one_outside_is_a_problem_of_its_members(
    tmp_path: Path, target: str, outside: bool
) -> None:
    files = {**gorepo.KINDS["workspace"]}
    files["go.work"] += f"\nreplace example.com/x => {target}\n"
    projects = found(tree(tmp_path / "repo", files))
    problem = f"go.work replaces a module by {target}, which is outside the repository" if outside else None
    assert {name: project.problem for name, project in projects.items()} == {"api": problem, "lib": problem, "tools": None}


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"go.mod": "modul x\n", "x.go": "package x\n"}, "no module directive"),
        ({"go.mod": 'module "x\n', "x.go": "package x\n"}, "go.mod cannot be used: line 1"),
        ({"go.mod": gorepo.module("x")}, "no Go packages"),
        ({"go.mod": gorepo.module("x") + "replace y => ../y\n", "x.go": "package x\n"}, r"replaces a module by ../y"),
        ({"go.mod": gorepo.module("x") + "replace y => /y\n", "x.go": "package x\n"}, r"replaces a module by /y"),
    ],
)
def test_a_project_that_cannot_be_analysed_says_why(tmp_path: Path, files: dict[str, str], problem: str) -> None:
    projects = found(tree(tmp_path / "repo", {**gorepo.under("bad", files), **gorepo.under("good", gorepo.KINDS["single"])}))
    assert projects["good"].problem is None
    if "../y" in problem:  # from bad/, that is inside
        assert projects["bad"].problem is None
    else:
        assert problem in (projects["bad"].problem or "")


def test_a_replacement_outside_the_repository_is_a_problem_one_inside_is_none(tmp_path: Path) -> None:
    text = gorepo.module("x") + "replace (\n\ty => {}\n)\n"
    for target, problem in [("./y", False), ("../y", True), ("../../y", True), ("..", True), (".", False)]:
        project = found(tree(tmp_path / "repo", {"go.mod": text.format(target), "x.go": "package x\n"}))["."]
        assert (project.problem is not None) is problem


@pytest.mark.parametrize(
    "files", [{}, {"README": "x"}, {"x.go": "package x\n"}, {"vendor/a/go.mod": gorepo.module("a")}, {"go.mod": "// nothing\n"}]
)
def test_a_repository_without_a_module(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(DiscoveryError, match=r"no go\.mod found"):
        discover(tree(tmp_path, files))


def test_an_empty_go_mod_keeps_its_directory_out_and_is_no_project(tmp_path: Path) -> None:
    """As Go does; it is a common way to keep Go out of a directory."""
    projects = found(tree(tmp_path, {**gorepo.KINDS["single"], "web/go.mod": "// not Go\n", "web/x.go": "package x\n"}))
    assert list(projects) == ["."]
    assert projects["."].packages == 1


@pytest.mark.real
async def test_submodules_are_projects_only_where_they_are_asked_for(tmp_path: Path, checkouts: Checkouts) -> None:
    """A directory that .gitmodules names without being a submodule is searched like any other."""
    sub = gorepo.make(tmp_path / "sub")
    repo = gorepo.make(tmp_path / "repo")
    modules = '[submodule "s"]\n\tpath = third/party\n\turl = ../sub\n[submodule "gone"]\n\tpath = cmd\n\turl = ../sub\n'
    repo.write({".gitmodules": modules, **gorepo.under("cmd", gorepo.KINDS["single"])})
    repo.git("add", "--all")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{sub.head()},third/party")
    repo.git("commit", "--quiet", "--message", "submodule")
    async with checkouts.checkout(url_of(repo.path)) as checkout:
        assert list(found(checkout.path)) == [".", "cmd"]
    async with checkouts.checkout(url_of(repo.path), submodules=True) as checkout:
        assert list(found(checkout.path)) == [".", "cmd", "third/party"]


# Links


def test_links_are_never_followed(tmp_path: Path) -> None:
    """Not to a directory with a module, not in circles, not out of the repository."""
    tree(tmp_path / "outside", "single")
    root = tree(tmp_path / "repo", {**gorepo.KINDS["single"], **gorepo.under("real", gorepo.KINDS["single"])})
    for name, target in {"loop": ".", "again": "..", "out": "../outside", "alias": "real", "real/up": ".."}.items():
        (root / name).symlink_to(target)
    assert list(found(root)) == [".", "real"]


@pytest.mark.parametrize("target", ["/etc/hostname", "../../outside/go.mod", "nowhere", "real.mod"])
def test_a_go_mod_that_is_a_link_is_refused(tmp_path: Path, target: str) -> None:
    tree(tmp_path / "outside", "single")
    root = tree(tmp_path / "repo", {**gorepo.KINDS["single"], "m/m.go": "package m\n", "m/real.mod": gorepo.module("m")})
    (root / "m" / "go.mod").symlink_to(target)
    assert found(root)["m"].problem == "go.mod cannot be used: it is not a regular file"


def test_a_use_through_a_link_is_refused(tmp_path: Path) -> None:
    tree(tmp_path / "outside", "single")
    root = tree(tmp_path / "repo", {**gorepo.KINDS["single"], "go.work": "go 1.21\nuse ./out/x\n"})
    (root / "out").symlink_to("../outside")
    with pytest.raises(DiscoveryError, match="symbolic link"):
        discover(root)


@pytest.mark.real
async def test_links_that_leave_a_checkout_are_refused_with_a_reason(tmp_path: Path, checkouts: Checkouts) -> None:
    repo = gorepo.make(tmp_path / "repo", kind="multi")
    (repo.path / "m").mkdir()
    (repo.path / "m" / "go.mod").symlink_to("../../../../../../etc/hostname")
    (repo.path / "m" / "m.go").symlink_to("/etc/passwd")
    repo.commit()
    async with checkouts.checkout(url_of(repo.path)) as checkout:
        projects = found(checkout.path, refused_links=checkout.refused_links)
    assert projects["m"].problem == "go.mod cannot be used: it is a symbolic link that leads out of the repository"
    assert projects["alpha"].problem is None
    (repo.path / "go.work").symlink_to("/etc/hostname")
    repo.commit()
    async with checkouts.checkout(url_of(repo.path)) as checkout:
        with pytest.raises(DiscoveryError, match=r"go\.work is a symbolic link that leads out"):
            discover(checkout.path, refused_links=checkout.refused_links)


# Bounds


def test_names_that_no_project_can_have_are_left_aside(tmp_path: Path) -> None:
    root = tree(
        tmp_path, {**gorepo.KINDS["single"], "new\nline/go.mod": gorepo.module("x"), "back\\slash/go.mod": gorepo.module("y")}
    )
    (root / "caf\udce9").mkdir()
    (root / "caf\udce9" / "go.mod").write_text(gorepo.module("z"))
    assert list(found(root)) == ["."]


def test_too_much_is_refused(tmp_path: Path) -> None:
    tree(tmp_path, {f"m{number}/go.mod": gorepo.module(f"x/{number}") for number in range(6)})
    with pytest.raises(LimitExceeded, match="6 modules; at most 5"):
        discover(tmp_path, bounds=Bounds(modules=5))
    with pytest.raises(LimitExceeded, match="more than 3 directories"):
        discover(tmp_path, bounds=Bounds(directories=3))
    (tmp_path / "m0" / "go.mod").write_text(gorepo.module("x") + "// " + "x" * 2000)
    assert "larger than 1000 bytes" in (found(tmp_path, bounds=Bounds(file_bytes=1000))["m0"].problem or "")
