"""The generated pages of the reference, apart from the public names of packages."""
