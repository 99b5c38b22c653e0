# The library of programs that only run models, libbelfry_predictor.a: the rooms below src/predictor, compiled once more
# without what training alone needs (BEL_INFERENCE), each function in a section of its own, so that a program linked with
# --gc-sections has what it may call. docs/predictor.md says what that comes to, and what these two make of it:
set(BELFRY_PREDICTOR_LEVELS "${BELFRY_LEVELS}" CACHE STRING
    "Instruction-set levels of libbelfry_predictor.a, of: ${BELFRY_LEVELS}")
set(BELFRY_PREDICTOR_WITHOUT "" CACHE STRING
    "Operations that libbelfry_predictor.a leaves out, by their names in src/ops/ops.def (GRU;LSTM;...)")

# Which operations are kept, for src/ops/op_table.c.
set(kept "")
set(unknown ${BELFRY_PREDICTOR_WITHOUT})
file(READ src/ops/ops.def rows)
string(REGEX MATCHALL "\nOP\\([A-Z0-9_]+, \"[A-Za-z0-9]+\"" rows "${rows}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/ops/ops.def)
foreach(row IN LISTS rows)
    string(REGEX MATCH "OP\\(([A-Z0-9_]+), \"([A-Za-z0-9]+)\"" row "${row}")
    set(id ${CMAKE_MATCH_1})
    set(name ${CMAKE_MATCH_2})
    set(is_kept 1)
    if(name IN_LIST BELFRY_PREDICTOR_WITHOUT)
        set(is_kept 0)
        list(REMOVE_ITEM unknown ${name})
    endif()
    string(APPEND kept "    BEL_KEPT_${id} = ${is_kept},\n")
endforeach()
if(unknown)
    message(FATAL_ERROR "BELFRY_PREDICTOR_WITHOUT: src/ops/ops.def has no ${unknown}")
endif()
set(BELFRY_PREDICTOR_INCLUDE ${CMAKE_CURRENT_BINARY_DIR}/predictor)
file(CONFIGURE OUTPUT ${BELFRY_PREDICTOR_INCLUDE}/ops_kept.h
    CONTENT "// Made by cmake/predictor.cmake.\nenum {\n${kept}};\n" @ONLY)

add_library(belfry_predictor_flags INTERFACE)
target_compile_definitions(belfry_predictor_flags INTERFACE BEL_INFERENCE BEL_BUILDING)
target_compile_options(belfry_predictor_flags INTERFACE -ffunction-sections -fdata-sections)
target_include_directories(belfry_predictor_flags INTERFACE include src ${BELFRY_PREDICTOR_INCLUDE})
target_include_directories(belfry_predictor_flags SYSTEM INTERFACE ${BELFRY_PROTO})
target_link_libraries(belfry_predictor_flags INTERFACE belfry_build_flags)
set(without ${BELFRY_LEVELS})
list(REMOVE_ITEM without ${BELFRY_PREDICTOR_LEVELS})
foreach(level IN LISTS without)
    target_compile_definitions(belfry_predictor_flags INTERFACE BEL_WITHOUT_${level})
endforeach()

# What runs, as fast as elsewhere.
set(room_files "")
foreach(room ops runtime predictor)
    list(APPEND room_files src/${room}/*.c)
endforeach()
file(GLOB_RECURSE running CONFIGURE_DEPENDS ${room_files})
list(FILTER running EXCLUDE REGEX "(_isa|product_openblas)\\.c$")
add_library(belfry_predictor_running OBJECT ${running})

# What works while a model is loaded: small. Of the ground what these rooms call; it knows no library but jansson.
set(room_files "")
foreach(room tensor graph passes onnx)
    list(APPEND room_files src/${room}/*.c)
endforeach()
file(GLOB_RECURSE loading CONFIGURE_DEPENDS ${room_files})
list(FILTER loading EXCLUDE REGEX "onnx/(write[a-z_]*|emit)\\.c$")
foreach(name alloc arena budget cgroup clock fault file hash index isa json linux_memory linux_sched log mapping number real rng
        status str thread)
    list(APPEND loading src/base/${name}.c)
endforeach()
add_library(belfry_predictor_loading OBJECT ${loading} ${BELFRY_PROTO}/onnx.pb-c.c)
target_compile_options(belfry_predictor_loading PRIVATE $<$<CONFIG:Release>:-Os>)

set(parts belfry_predictor_running belfry_predictor_loading)
foreach(level IN LISTS BELFRY_PREDICTOR_LEVELS)
    add_library(belfry_predictor_${level} OBJECT src/ops/kernels/cpu_isa.c src/ops/kernels/product_isa.c
        src/ops/kernels/recurrent_isa.c src/ops/kernels/row_norm_isa.c)
    target_compile_definitions(belfry_predictor_${level} PRIVATE BEL_LEVEL=${level})
    target_compile_options(belfry_predictor_${level} PRIVATE ${BELFRY_LEVEL_FLAGS_${level}} -O3)
    list(APPEND parts belfry_predictor_${level})
endforeach()
set(objects "")
foreach(part IN LISTS parts)
    target_link_libraries(${part} PRIVATE belfry_predictor_flags)
    set_target_properties(${part} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
endforeach()

add_library(belfry_predictor STATIC ${objects})
target_include_directories(belfry_predictor PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>)
target_link_libraries(belfry_predictor PUBLIC PkgConfig::PROTOBUF_C PkgConfig::JANSSON Threads::Threads m)
set_target_properties(belfry_predictor PROPERTIES LINKER_LANGUAGE C)

install(TARGETS belfry_predictor ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
configure_file(cmake/belfry-predictor.pc.in belfry-predictor.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/belfry-predictor.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
