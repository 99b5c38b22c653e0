# cpack runs it first. Without dpkg-shlibdeps or file, cpack would make a Debian package without dependencies,
# and only warn. Only PATH counts, as for cpack itself.
if(CPACK_GENERATOR STREQUAL "DEB")
    foreach(program dpkg-shlibdeps file)
        find_program(found ${program} PATHS ENV PATH NO_DEFAULT_PATH NO_CACHE)
        if(NOT found)
            message(FATAL_ERROR "The Debian package needs ${program}, and PATH has none; hint: tools/install-deps "
                "--build-only installs it (Debian packages dpkg-dev and file)")
        endif()
        unset(found)
    endforeach()
endif()
