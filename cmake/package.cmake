# Installed files besides the program, the libraries and the headers, and three Debian packages of all of them:
# `cpack -G DEB` in a build folder, or `cmake --build --preset release --target package`, makes
# belfry_VERSION_ARCHITECTURE.deb, and belfry-dev and python3-belfry likewise.
#
# belfry contains everything that a host of a job needs, including the shared library and the headers, as
# hosts compile packages (--package_path). belfry-dev has the static libraries of programs that run models or
# learn (component dev, small.cmake). It depends on the packages that these are linked with. python3-belfry has
# the Python package (component python), with the table of the interface beside it. dpkg-shlibdeps reads
# belfry's dependencies from the binaries. So a package is for the release of Debian on which it was built, or a
# later one with these libraries. package_needs.cmake ends cpack if dpkg-shlibdeps or file is missing.
# tests/cli/deb.sh checks the contents of the packages, and tools/check-package installs them into a fresh
# system.

install(FILES README.md CHANGELOG.md SECURITY.md cluster.yaml DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/belfry-dev RENAME copyright COMPONENT dev)
install(FILES bench/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
# The folder's CMakeLists.txt belongs to the build of Belfry. Modes are explicit, since those of a checkout
# depend on the builder's umask.
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
    REGEX "/examples/CMakeLists\\.txt$" EXCLUDE
    PATTERN build EXCLUDE
    PATTERN __pycache__ EXCLUDE
    REGEX "/make[-_][a-z]+$" PERMISSIONS
        OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

file(GLOB BELFRY_PYTHON CONFIGURE_DEPENDS python/belfry/*.py)
set(BELFRY_PYTHON_FOLDER lib/python3/dist-packages/belfry)
install(FILES ${BELFRY_PYTHON} python/belfry/py.typed DESTINATION ${BELFRY_PYTHON_FOLDER} COMPONENT python)
install(FILES tests/abi/${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}.txt DESTINATION ${BELFRY_PYTHON_FOLDER}
    RENAME interface.txt COMPONENT python)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/python3-belfry RENAME copyright COMPONENT python)

set(BELFRY_MAINTAINER "Belfry maintainers <maintainers@belfry.invalid>" CACHE STRING
    "Who is named in the Debian package")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME belfry)
set(CPACK_PACKAGE_VENDOR Belfry)
set(CPACK_PACKAGE_CONTACT ${BELFRY_MAINTAINER})
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS
    ${CMAKE_CURRENT_SOURCE_DIR}/cmake/package_needs.cmake ${CMAKE_CURRENT_SOURCE_DIR}/cmake/package_modes.cmake)

set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL main dev python)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_MAIN_PACKAGE_NAME belfry)
set(CPACK_DEBIAN_MAIN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_MAIN_PACKAGE_SECTION science)
# The first line of each description is that package's summary. A common one would be put before it.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_DEBIAN_MAIN_DESCRIPTION
"${PROJECT_DESCRIPTION}
Belfry trains models on many machines in step: parameter servers, workers
and a master, driven by one command or by any C program. The same run gives
the same bits, however its replicas are assigned to processes, and whichever
of these is killed on the way.
.
This package has the command, the library, headers, the documents and
examples.")
set(CPACK_DEBIAN_MAIN_PACKAGE_SHLIBDEPS ON)
# dpkg-shlibdeps sees no library that is opened at run time. The package of gRPC's says which version a user needs.
set(CPACK_DEBIAN_MAIN_PACKAGE_DEPENDS ${BELFRY_GRPC_PACKAGE})
if(BELFRY_DPKG_QUERY)
    execute_process(COMMAND ${BELFRY_DPKG_QUERY} --control-show ${BELFRY_GRPC_PACKAGE} shlibs
        OUTPUT_VARIABLE grpc_shlibs ERROR_QUIET)
    if(grpc_shlibs MATCHES "(^|\n)libgrpc [^ ]+ ([^\n]+)")
        set(CPACK_DEBIAN_MAIN_PACKAGE_DEPENDS ${CMAKE_MATCH_2})
    endif()
endif()
set(CPACK_DEBIAN_MAIN_PACKAGE_RECOMMENDS libcurl4) # for URLs, opened at run time
# A compiler for --package_path, OpenBLAS for --products openblas, ssh for `doctor --cluster`.
set(CPACK_DEBIAN_MAIN_PACKAGE_SUGGESTS "belfry-dev, c-compiler, pkg-config, libopenblas0-pthread, openssh-client")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME belfry-dev)
set(CPACK_DEBIAN_DEV_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_DESCRIPTION
"Belfry's models in programs of your own
Static libraries for programs that run models, belfry-predictor, and for
programs that continue to learn, belfry-learner. The headers and examples are
in the package belfry.")
# belfry of the same version has the headers. BELFRY_SMALL_NEEDS are the packages of the static libraries.
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "belfry (= ${PROJECT_VERSION}), ${BELFRY_SMALL_NEEDS}")
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF) # it contains no shared objects

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-belfry)
set(CPACK_DEBIAN_PYTHON_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_DESCRIPTION
"Belfry for Python
Runs trained models on numpy arrays, and makes a program in Python, such as
one that trains with PyTorch, a program of many processes. It calls the
library of the package belfry.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "belfry (= ${PROJECT_VERSION}), python3 (>= 3.9), python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF) # it contains no shared objects
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$") # the default is the builder's
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64)$")
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
endif()
include(CPack)
