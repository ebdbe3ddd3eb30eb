"""Example answers for the API's description, by the names of their handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gctd.http.examples.analyses import ANALYSIS, WHOLE_ANALYSIS
from gctd.http.examples.comparisons import DIFF, GATE, NEW, OLD
from gctd.http.examples.functions import FOUND_FUNCTIONS, FUNCTION, FUNCTION_HISTORY
from gctd.http.examples.operation import RECORD, STATE, WORKER
from gctd.http.examples.repositories import CONFIG, REPO, UPDATE
from gctd.http.examples.tasks import ATTEMPT, QUEUED, TASK
from servicekit import PROJECTIONS_EXAMPLE as PROJECTIONS

EXAMPLES: Mapping[str, Any] = {
    "list_tasks": [TASK],
    "schedule_first": QUEUED,
    "schedule": [QUEUED],
    "get_task": TASK,
    "retry_task": QUEUED,
    "task_result": WHOLE_ANALYSIS,
    "list_attempts": [ATTEMPT],
    "register": REPO,
    "repo_status": REPO,
    "list_repos": [REPO],
    "list_analyses": [ANALYSIS],
    "get_analysis": WHOLE_ANALYSIS,
    "check_updates": [UPDATE],
    "rescore": [QUEUED],
    "upload_coverage": QUEUED,
    "project_history": [NEW | {"break": []}, OLD | {"break": []}],
    "project_diff": DIFF,
    "search_functions": FOUND_FUNCTIONS,
    "one_function": FUNCTION,
    "function_history": FUNCTION_HISTORY,
    "judge_analysis": GATE,
    "ask_for_verdict": GATE,
    "export_analysis": WHOLE_ANALYSIS,
    "get_repo_config": CONFIG,
    "set_repo_config": CONFIG,
    "list_workers": [WORKER],
    "take_github_delivery": {"id": "5f0c1f2d9a8b7c6d5e4f3a2b1c0d9e8f", "note": ""},
    "take_gitlab_delivery": {"id": None, "note": "nothing follows from Pipeline Hook"},
    "search_log": {"from": 1, "to": 21, "end": 21, "events": [RECORD]},
    "state_at": STATE,
    "show_projections": PROJECTIONS,
}
"""Each keeps to the schema of its answer: a test holds that."""
