# Third-party libraries.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(DEFLATE REQUIRED IMPORTED_TARGET libdeflate)
pkg_check_modules(GRPC REQUIRED IMPORTED_TARGET grpc)
# gRPC is linked with it anyway. The command makes certificates with it, and requests to stores are signed.
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto>=3)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(JPEG REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng)
# civetweb comes without a .pc file.
find_path(CIVETWEB_INCLUDE civetweb.h REQUIRED)
find_library(CIVETWEB civetweb REQUIRED)
# The library is opened at run time (src/store/http_curl.c).
find_path(BELFRY_CURL_HEADERS curl/curl.h)
mark_as_advanced(BELFRY_CURL_HEADERS)
if(NOT BELFRY_CURL_HEADERS)
    message(WARNING "Belfry will open no URLs: curl/curl.h is missing; hint: install libcurl4-openssl-dev")
endif()
find_program(PROTOC_C protoc-c REQUIRED)

add_library(belfry_dependencies INTERFACE)
target_link_libraries(belfry_dependencies INTERFACE
    PkgConfig::GRPC PkgConfig::PROTOBUF_C PkgConfig::YAML PkgConfig::JANSSON PkgConfig::DEFLATE PkgConfig::JPEG
    PkgConfig::PNG PkgConfig::CRYPTO ZLIB::ZLIB ${CIVETWEB} Threads::Threads
    ${CMAKE_DL_LIBS} m)
