"""The aggregate of a task: one analysis of one project, tried a few times, with one result at most."""

from eventlog import Decider
from gctd.domain.task.commands import TaskCommand
from gctd.domain.task.decisions import decide
from gctd.domain.task.events import TaskEvent
from gctd.domain.task.state import CATEGORY, Task, evolve

TASK: Decider[Task, TaskCommand, TaskEvent] = Decider(CATEGORY, decide, evolve, initial=None)
