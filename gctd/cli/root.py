"""The program `gctd`: its commands, and the hints in its errors."""

from __future__ import annotations

from terminalkit import Command, ExitCode, Program

PROGRAM = Program(
    name="gctd",
    summary="Track how risky the functions of Go repositories are to change, by their CRAP score.",
    epilog="""\b
Examples:
  gctd up --demo                                    the whole system, with a small repository
  gctd check --base main                            the gate in a working copy
  gctd repo add https://github.com/owner/name       register a repository, find its projects
  gctd repo analyze https://github.com/owner/name   score its functions, show the worst
  gctd task list --status failed --json             what went wrong, for a program to read

\b
Settings come from flags, then GCTD_* in the environment, then .gctd.yaml: see `gctd config show`.""",
    commands={
        "up": Command(
            "gctd.cli.up.command", "Run the whole system on this machine: NATS, the tracker, a worker, the pantry, GraphQL."
        ),
        "serve": Command("gctd.cli.processes.service", "Run the control plane: API, event stream and web page."),
        "worker": Command("gctd.cli.processes.workers", "Run a worker; or list, pause and unpause the workers that run."),
        "repo": Command("gctd.cli.repos.commands", "Register repositories, show them, have them analysed."),
        "task": Command("gctd.cli.tasks.commands", "List, show, watch, cancel, retry and delete tasks, and show their results."),
        "check": Command("gctd.cli.builds.check", "Judge the Go modules of a working copy by the gate, without a server."),
        "gate": Command(
            "gctd.cli.builds.gate",
            "Judge the latest analyses of the repository at URL by limits, and by the changes since a base.",
        ),
        "coverage": Command("gctd.cli.builds.coverage", "Send coverage profiles of tests that ran elsewhere."),
        "token": Command("gctd.cli.tokens", "Create, list and revoke the tokens of the API."),
        "config": Command("gctd.cli.processes.service", "Show the settings and where each comes from."),
        "doctor": Command(
            "gctd.cli.doctor.command",
            "Check server, broker, tables, disks and the programs that workers run, and suggest remedies.",
        ),
        "completion": Command(
            "gctd.cli.completion",
            "Print the script that lets SHELL complete commands, options, repositories, tasks and workers.",
        ),
    },
    meanings={ExitCode.FAILURE: "failed; a task or a discovery that was waited for failed"},
    hints={ExitCode.TIMEOUT: "allow more time with --timeout"},
    asking={
        ExitCode.UNAVAILABLE: "is the server running? start everything with: gctd up; or set its address with --url or GCTD_URL",
        ExitCode.NOT_ALLOWED: "set GCTD_AUTH_TOKEN to a token of the server, with the scope it needs: gctd token create",
    },
)

main = PROGRAM.run
