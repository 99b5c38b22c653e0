# Builds for aarch64 on another machine: gcc's cross compiler, Debian's libraries unpacked in
# build/aarch64-root (tools/check-aarch64 does that), and qemu for the tests.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(BELFRY_ROOT "${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-root" ABSOLUTE)
set(CMAKE_SYSROOT ${BELFRY_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${BELFRY_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} "${BELFRY_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${BELFRY_ROOT}/usr/share/pkgconfig")

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;${BELFRY_ROOT})
