"""Version of the package, which is that of the library."""

VERSION = "0.3.0"
