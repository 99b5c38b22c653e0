# What is installed besides the program, the library and the headers, and the Debian package of all that: `cpack -G DEB`
# in a build folder, or `cmake --build --preset release --target package`, makes belfry_VERSION_ARCHITECTURE.deb.
#
# One package has everything, as a host of a job needs the library for packages (--package) and the headers are small.
# Its files are those of `cmake --install`, below /usr. What it depends on is read from the binaries by
# dpkg-shlibdeps, so a package is for the release of Debian on which it was built, or a later one with these libraries.
# tests/cli/deb.sh looks into one, tools/check-package installs it into a fresh system.

install(FILES README.md CHANGELOG.md SECURITY.md cluster.yaml DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES bench/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
# CMakeLists.txt of the folder itself belongs to the build of Belfry. Modes are said, since those of a checkout depend on
# the builder's umask.
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
    REGEX "/examples/CMakeLists\\.txt$" EXCLUDE
    PATTERN build EXCLUDE
    PATTERN __pycache__ EXCLUDE
    REGEX "/make[-_][a-z]+$" PERMISSIONS
        OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(BELFRY_MAINTAINER "Belfry maintainers <maintainers@belfry.invalid>" CACHE STRING
    "Who is named in the Debian package")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME belfry)
set(CPACK_PACKAGE_VENDOR Belfry)
set(CPACK_PACKAGE_CONTACT ${BELFRY_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/cmake/package_modes.cmake)

set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Belfry trains models on many machines in step: parameter servers, workers
and a master, driven by one command or by any C program. The same run gives
the same bits, however its replicas are assigned to processes, and whichever
of these is killed on the way.
.
This package has the command, the library, one for programs that only run
models, headers, the documents and examples.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
# A compiler for --package_path, what belfry_predictor is linked with, OpenBLAS for --products openblas, ssh for `doctor --cluster`.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "c-compiler, pkg-config, libprotobuf-c-dev, libjansson-dev, libopenblas0-pthread, openssh-client")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$") # otherwise it would be the builder's
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64)$")
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
endif()
include(CPack)
