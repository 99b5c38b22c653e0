# Instruction-set levels of the vector kernels, and the flags of each: the rows of src/base/isa_levels.h. An
# unknown processor gets the portable build.
option(BELFRY_PORTABLE "Vector kernels for no particular processor, without fused multiply-add" OFF)

if(NOT BELFRY_PORTABLE AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(BELFRY_LEVELS v2 v3 v4)
    set(BELFRY_LEVEL_FLAGS_v2 -march=x86-64-v2)
    set(BELFRY_LEVEL_FLAGS_v3 -march=x86-64-v3)
    set(BELFRY_LEVEL_FLAGS_v4 -march=x86-64-v4)
elseif(NOT BELFRY_PORTABLE AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(BELFRY_LEVELS neon)
    set(BELFRY_LEVEL_FLAGS_neon -march=armv8-a)
else()
    set(BELFRY_LEVELS plain)
    set(BELFRY_LEVEL_FLAGS_plain)
    target_compile_definitions(belfry_build_flags INTERFACE BEL_PORTABLE)
endif()
message(STATUS "Levels of the vector kernels: ${BELFRY_LEVELS}")
