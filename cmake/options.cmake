# Language, warnings and sanitizers: one interface target that every other target links.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g -DBEL_DEBUG")

option(BELFRY_TESTS "Build the tests and benchmarks" ON)
option(BELFRY_UNIT_TESTS "Build unit and fuzz tests, too; with the label long or release in any case" ON)
option(BELFRY_WERROR "Treat warnings as errors" ON)
set(BELFRY_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")
option(BELFRY_FUZZ "Let clang's libFuzzer drive what is in tests/fuzz" OFF)

add_library(belfry_build_flags INTERFACE)
target_compile_definitions(belfry_build_flags INTERFACE _POSIX_C_SOURCE=200809L)
# -ffp-contract=off: the compiler never fuses a multiply and an add, so that both compilers and
# every instruction-set level give the same bits (docs/determinism.md).
target_compile_options(belfry_build_flags INTERFACE
    -ffp-contract=off -fno-math-errno -fno-trapping-math -Wall -Wextra -Wpedantic -Wconversion -Wshadow
    -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wundef -Wcast-qual -Wwrite-strings
    $<$<BOOL:${BELFRY_WERROR}>:-Werror>)
if(BELFRY_SANITIZE)
    # A report needs the lines of functions (-g1), and no more: the build has 330 programs.
    target_compile_options(belfry_build_flags INTERFACE
        -fsanitize=${BELFRY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
    target_link_options(belfry_build_flags INTERFACE -fsanitize=${BELFRY_SANITIZE})
    target_compile_definitions(belfry_build_flags INTERFACE BEL_SANITIZE="${BELFRY_SANITIZE}")
    # Loops with checked accesses are not vectorized. clang warns about those that ask for it.
    if(CMAKE_C_COMPILER_ID MATCHES Clang)
        target_compile_options(belfry_build_flags INTERFACE -Wno-pass-failed)
    endif()
endif()
if(BELFRY_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
        message(FATAL_ERROR "BELFRY_FUZZ needs clang: cmake --preset fuzz")
    endif()
    # Counts the branches that an input takes. Only the programs of tests/fuzz are linked with the driver.
    target_compile_options(belfry_build_flags INTERFACE -fsanitize=fuzzer-no-link)
    target_link_options(belfry_build_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
