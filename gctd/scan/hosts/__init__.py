"""Facts about a repository other than its code: stars, forks, language, license. From its host's API, else from its files."""
