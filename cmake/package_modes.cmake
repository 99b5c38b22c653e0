# cpack runs it over the files of a package. It opens folders to all, whatever the builder's umask is. (In
# CMake 3.25 CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS does not apply to folders that an install makes on
# its way.)
file(CHMOD_RECURSE ${CPACK_TEMPORARY_INSTALL_DIRECTORY} DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
