# The small libraries: libbelfry_predictor.a for programs that only run models, and libbelfry_learner.a for
# those that also learn. They are rooms of src/, compiled a second time (BEL_SMALL) with each function in a
# separate section; the vector kernels are those of the shared library. So a program linked with --gc-sections has only the functions that it may call. The
# predictor lacks the operations that only training makes (BEL_INFERENCE, which only src/ops/op_table.c
# reads). docs/predictor.md describes the effect of that, and of these two settings:
set(BELFRY_PREDICTOR_LEVELS "${BELFRY_LEVELS}" CACHE STRING
    "Instruction-set levels of the small libraries, of: ${BELFRY_LEVELS}")
set(BELFRY_PREDICTOR_WITHOUT "" CACHE STRING
    "Operations that the small libraries leave out, by their names in src/ops/ops.def (GRU;LSTM;...)")

# The operations that are kept, for src/ops/op_table.c.
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
set(BELFRY_SMALL_INCLUDE ${CMAKE_CURRENT_BINARY_DIR}/small)
file(CONFIGURE OUTPUT ${BELFRY_SMALL_INCLUDE}/ops_kept.h
    CONTENT "// Made by cmake/small.cmake.\nenum {\n${kept}};\n" @ONLY)

add_library(belfry_small_flags INTERFACE)
target_compile_definitions(belfry_small_flags INTERFACE BEL_SMALL BEL_BUILDING)
target_compile_options(belfry_small_flags INTERFACE -ffunction-sections -fdata-sections)
target_include_directories(belfry_small_flags INTERFACE include src ${BELFRY_SMALL_INCLUDE})
target_include_directories(belfry_small_flags SYSTEM INTERFACE ${BELFRY_PROTO})
target_link_libraries(belfry_small_flags INTERFACE belfry_build_flags)
set(without ${BELFRY_LEVELS})
list(REMOVE_ITEM without ${BELFRY_PREDICTOR_LEVELS})
foreach(level IN LISTS without)
    target_compile_definitions(belfry_small_flags INTERFACE BEL_WITHOUT_${level})
endforeach()

# Compiles source files to objects, which both libraries share.
function(belfry_small_objects name)
    add_library(${name} OBJECT ${ARGN})
    target_link_libraries(${name} PRIVATE belfry_small_flags)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

# The Debian packages that a program linked with one of the libraries needs: those of Requires and Libs in
# belfry-small.pc.in.
set(BELFRY_SMALL_NEEDS "libprotobuf-c-dev, libc6-dev")

# Makes a library of such objects, with its pkg-config file; `description` goes into that file.
function(belfry_small_library name pkg description)
    set(objects "")
    foreach(part IN LISTS ARGN)
        list(APPEND objects $<TARGET_OBJECTS:${part}>)
    endforeach()
    add_library(${name} STATIC ${objects})
    target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>)
    target_link_libraries(${name} PUBLIC PkgConfig::PROTOBUF_C Threads::Threads m)
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C)
    set(BELFRY_SMALL_PKG ${pkg})
    set(BELFRY_SMALL_LIBRARY ${name})
    set(BELFRY_SMALL_DESCRIPTION ${description})
    configure_file(cmake/belfry-small.pc.in ${pkg}.pc @ONLY)
    install(TARGETS ${name} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${pkg}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endfunction()

# Code that runs, as fast as elsewhere.
set(room_files "")
foreach(room ops runtime predictor)
    list(APPEND room_files src/${room}/*.c)
endforeach()
file(GLOB_RECURSE running CONFIGURE_DEPENDS ${room_files})
list(FILTER running EXCLUDE REGEX "(_isa|product_openblas|op_table)\\.c$")
belfry_small_objects(belfry_small_running ${running})

# Code that works while a model is loaded, compiled for size. It includes the parts of src/base that these
# rooms call.
set(room_files "")
foreach(room tensor graph passes onnx)
    list(APPEND room_files src/${room}/*.c)
endforeach()
file(GLOB_RECURSE loading CONFIGURE_DEPENDS ${room_files})
list(FILTER loading EXCLUDE REGEX "onnx/((graph_)?write[a-z_]*|emit)\\.c$")
foreach(name alloc arena budget cgroup clock crc32c decimal fault file hash index isa json json_parse linux_file linux_memory linux_sched log mapping
        number philox real rng sized status str thread)
    list(APPEND loading src/base/${name}.c)
endforeach()
belfry_small_objects(belfry_small_loading ${loading} ${BELFRY_PROTO}/onnx.pb-c.c)
target_compile_options(belfry_small_loading PRIVATE $<$<CONFIG:Release>:-Os>)

# The learner's additions: update rules and rows, which run, and checkpoints, which do not.
file(GLOB learning CONFIGURE_DEPENDS src/learner/*.c src/optim/*.c src/ps/table/*.c)
list(FILTER learning EXCLUDE REGEX "_isa\\.c$")
foreach(name layout norms space space_update initial row_set)
    list(APPEND learning src/ps/layout/${name}.c)
endforeach()
belfry_small_objects(belfry_small_learning ${learning} src/ps/client/row_batch.c src/base/sort.c)
file(GLOB saving CONFIGURE_DEPENDS src/checkpoint/*.c)
list(FILTER saving EXCLUDE REGEX "/(shard_pack|share)\\.c$")
belfry_small_objects(belfry_small_saving ${saving})
target_compile_options(belfry_small_saving PRIVATE $<$<CONFIG:Release>:-Os>)

belfry_small_objects(belfry_small_inference src/ops/op_table.c)
target_compile_definitions(belfry_small_inference PRIVATE BEL_INFERENCE)
belfry_small_objects(belfry_small_training src/ops/op_table.c)

set(kernels "")
set(rules "")
foreach(level IN LISTS BELFRY_PREDICTOR_LEVELS)
    list(APPEND kernels belfry_kernels_${level})
    list(APPEND rules belfry_rules_${level})
endforeach()

set(common belfry_small_running belfry_small_loading ${kernels})
belfry_small_library(belfry_predictor belfry-predictor "Belfry's models in programs that do not train"
    ${common} belfry_small_inference)
belfry_small_library(belfry_learner belfry-learner "Belfry's models in programs that go on learning"
    ${common} belfry_small_training belfry_small_learning belfry_small_saving ${rules})
