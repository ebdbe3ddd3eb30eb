"""The settings of the gateway: flag over environment (`GRAPHQL_*`) over `.graphql-fn.yaml` over default."""

from __future__ import annotations

from graphql_fn.core.limits import QueryLimits
from servicekit import ServerSettings
from terminalkit import SettingsSource, setting, settings

_LIMITS = QueryLimits()


@settings
class Settings(ServerSettings):
    """The settings. Durations are in seconds inside, and written as in `90s`, `10m`, `1h30m`."""

    allowed_origins: tuple[str, ...] = setting(
        default=(), help="Origins whose pages may ask, as in `https://example.org`; none by default."
    )
    max_body: int = setting(default=_LIMITS.source, ge=1, le=16 * 1024**2, help="Longest body, in bytes.")
    max_tokens: int = setting(default=_LIMITS.tokens, ge=1, le=100_000, help="Tokens that a query may have.")
    max_depth: int = setting(default=_LIMITS.depth, ge=1, le=50, help="Depth of nested fields.")
    max_aliases: int = setting(default=_LIMITS.aliases, ge=0, le=10_000, help="Fields that a query may rename.")
    max_root_fields: int = setting(default=_LIMITS.root_fields, ge=1, le=10_000, help="Fields that an operation itself may have.")
    max_errors: int = setting(default=_LIMITS.errors, ge=1, le=10_000, help="Errors that a result tells of.")
    query_timeout: float = setting(default=_LIMITS.seconds, duration=True, ge=0.01, le=600, help="Longest that a query may take.")
    max_cost: int = setting(default=_LIMITS.cost, ge=1, le=1_000_000, help="Objects that a query may come to.")
    max_subscribers: int = setting(default=500, ge=0, le=1900, help="Clients that may follow events at a time.")
    pantry_database: str | None = setting(
        default=None,
        help="Database of the pantry's read model, sqlite:PATH or postgresql:; without it no function pantry.",
    )
    tracker_database: str | None = setting(
        default=None,
        help="Database of the tracker's read model, sqlite:PATH or postgresql:; without it no function tracker.",
    )
    nats_url: str | None = setting(default=None, help="Address of the broker; without it there are no subscriptions.")
    max_lag: float = setting(
        default=30.0, duration=True, ge=1, help="Lag of a read model from which on the gateway is not ready."
    )
    introspection: bool = setting(default=True, help="Whether the schema may be asked for.")
    suggestions: bool | None = setting(
        default=None, help="Whether messages suggest names that are close; as introspection if it is not set."
    )

    @property
    def limits(self) -> QueryLimits:
        """The limits of a request."""
        return QueryLimits(
            source=self.max_body,
            tokens=self.max_tokens,
            depth=self.max_depth,
            aliases=self.max_aliases,
            root_fields=self.max_root_fields,
            fields=self.max_tokens,
            errors=self.max_errors,
            cost=self.max_cost,
            seconds=self.query_timeout,
        )


SETTINGS = SettingsSource(Settings, "GRAPHQL", ".graphql-fn.yaml")
"""Where the settings come from: flags, variables, the file, defaults."""
