"""Puts the library that BELFRY_LIBRARY names into the package; without it the package loads an installed one."""

import os
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py


class WithLibrary(build_py):
    def run(self):
        super().run()
        library = os.environ.get("BELFRY_LIBRARY")
        if library:
            shutil.copyfile(library, os.path.join(self.build_lib, "belfry", "libbelfry.so"))


setup(cmdclass={"build_py": WithLibrary})
