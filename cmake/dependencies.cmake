# Third-party libraries.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(DEFLATE REQUIRED IMPORTED_TARGET libdeflate)
# gRPC is opened at run time (src/rpc/api.c), by the name of the library that belongs to these headers. Its Debian
# package is for messages and for the dependencies of Belfry's (package.cmake).
pkg_check_modules(GRPC REQUIRED IMPORTED_TARGET grpc)
find_library(BELFRY_GRPC_FILE grpc HINTS ${GRPC_LIBRARY_DIRS} REQUIRED)
mark_as_advanced(BELFRY_GRPC_FILE)
file(REAL_PATH ${BELFRY_GRPC_FILE} grpc_file)
execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${CMAKE_READELF} -d ${grpc_file} OUTPUT_VARIABLE grpc_parts)
if(NOT grpc_parts MATCHES "soname: \\[([^]\n]+)\\]")
    message(FATAL_ERROR "${grpc_file} has no soname; expected gRPC's shared library; hint: install libgrpc-dev")
endif()
set(BELFRY_GRPC_LIBRARY ${CMAKE_MATCH_1})
string(REPLACE ".so." "" BELFRY_GRPC_PACKAGE ${BELFRY_GRPC_LIBRARY}) # unless dpkg has another name
find_program(BELFRY_DPKG_QUERY dpkg-query)
mark_as_advanced(BELFRY_DPKG_QUERY)
if(BELFRY_DPKG_QUERY)
    execute_process(COMMAND ${BELFRY_DPKG_QUERY} -S ${grpc_file} OUTPUT_VARIABLE grpc_owner ERROR_QUIET)
    if(grpc_owner MATCHES "^([a-z0-9.+-]+)[:,]")
        set(BELFRY_GRPC_PACKAGE ${CMAKE_MATCH_1})
    endif()
endif()
# The command makes certificates, requests to stores are signed, and served models have TLS over HTTP.
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libssl>=3 libcrypto>=3)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(JPEG REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng)
# The library is opened at run time (src/store/http_curl.c).
find_path(BELFRY_CURL_HEADERS curl/curl.h)
mark_as_advanced(BELFRY_CURL_HEADERS)
if(NOT BELFRY_CURL_HEADERS)
    message(WARNING "Belfry will open no URLs: curl/curl.h is missing; hint: install libcurl4-openssl-dev")
endif()
find_program(PROTOC_C protoc-c REQUIRED)

add_library(belfry_dependencies INTERFACE)
target_include_directories(belfry_dependencies SYSTEM INTERFACE ${GRPC_INCLUDE_DIRS})
target_link_libraries(belfry_dependencies INTERFACE
    PkgConfig::PROTOBUF_C PkgConfig::YAML PkgConfig::DEFLATE PkgConfig::JPEG
    PkgConfig::PNG PkgConfig::CRYPTO ZLIB::ZLIB Threads::Threads
    ${CMAKE_DL_LIBS} m)
