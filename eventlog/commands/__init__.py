"""Commands: load an aggregate, decide, append."""

from eventlog.commands.commands import MOST_IN_ONE_COMMIT, Commands, CommandStep, nothing_sent
from eventlog.commands.loading import Outcome

__all__ = ["MOST_IN_ONE_COMMIT", "CommandStep", "Commands", "Outcome", "nothing_sent"]
