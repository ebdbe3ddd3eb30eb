"""The projector: follows the log and brings a read model up to date."""
