"""Commands: load an aggregate, decide, append."""

from eventlog.commands.commands import MOST_IN_ONE_COMMIT, Commands, CommandStep
from eventlog.commands.outcomes import Outcome
from eventlog.commands.withdrawal import nothing_sent

__all__ = ["MOST_IN_ONE_COMMIT", "CommandStep", "Commands", "Outcome", "nothing_sent"]
