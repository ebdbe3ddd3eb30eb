"""What is known about a repository beside its code: stars, forks, language, license; from its host's API, else from its files."""
