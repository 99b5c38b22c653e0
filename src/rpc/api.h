// gRPC's C core, opened at run time. A process that never calls bel_rpc_begin loads neither gRPC
// nor the 47 libraries that it needs, which take longer to load than most commands run. The
// functions have the types of gRPC's headers, and are called as bel_grpc.call_unref(call). Only for
// the rooms that use gRPC: rpc, and transport/streams.
#ifndef BELFRY_RPC_API_H
#define BELFRY_RPC_API_H

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>

#include "belfry/status.h"

// Every function that Belfry calls. Names of the table leave out "grpc_".
#define BEL_GRPC_FUNCTIONS(FUNCTION)                                                               \
    FUNCTION(grpc_, byte_buffer_destroy)                                                           \
    FUNCTION(grpc_, byte_buffer_reader_destroy)                                                    \
    FUNCTION(grpc_, byte_buffer_reader_init)                                                       \
    FUNCTION(grpc_, byte_buffer_reader_peek)                                                       \
    FUNCTION(grpc_, byte_buffer_reader_readall)                                                    \
    FUNCTION(grpc_, call_cancel)                                                                   \
    FUNCTION(grpc_, call_cancel_with_status)                                                       \
    FUNCTION(grpc_, call_details_destroy)                                                          \
    FUNCTION(grpc_, call_details_init)                                                             \
    FUNCTION(grpc_, call_get_peer)                                                                 \
    FUNCTION(grpc_, call_ref)                                                                      \
    FUNCTION(grpc_, call_start_batch)                                                              \
    FUNCTION(grpc_, call_unref)                                                                    \
    FUNCTION(grpc_, channel_create)                                                                \
    FUNCTION(grpc_, channel_create_call)                                                           \
    FUNCTION(grpc_, channel_create_from_fd)                                                        \
    FUNCTION(grpc_, channel_credentials_release)                                                   \
    FUNCTION(grpc_, channel_destroy)                                                               \
    FUNCTION(grpc_, completion_queue_create_for_next)                                              \
    FUNCTION(grpc_, completion_queue_destroy)                                                      \
    FUNCTION(grpc_, completion_queue_next)                                                         \
    FUNCTION(grpc_, completion_queue_shutdown)                                                     \
    FUNCTION(grpc_, empty_slice)                                                                   \
    FUNCTION(grpc_, init)                                                                          \
    FUNCTION(grpc_, insecure_credentials_create)                                                   \
    FUNCTION(grpc_, insecure_server_credentials_create)                                            \
    FUNCTION(grpc_, lame_client_channel_create)                                                    \
    FUNCTION(grpc_, metadata_array_destroy)                                                        \
    FUNCTION(grpc_, metadata_array_init)                                                           \
    FUNCTION(grpc_, raw_byte_buffer_create)                                                        \
    FUNCTION(grpc_, resource_quota_arg_vtable)                                                     \
    FUNCTION(grpc_, resource_quota_create)                                                         \
    FUNCTION(grpc_, resource_quota_resize)                                                         \
    FUNCTION(grpc_, resource_quota_unref)                                                          \
    FUNCTION(grpc_, server_add_channel_from_fd)                                                    \
    FUNCTION(grpc_, server_add_http2_port)                                                         \
    FUNCTION(grpc_, server_cancel_all_calls)                                                       \
    FUNCTION(grpc_, server_create)                                                                 \
    FUNCTION(grpc_, server_credentials_release)                                                    \
    FUNCTION(grpc_, server_destroy)                                                                \
    FUNCTION(grpc_, server_register_completion_queue)                                              \
    FUNCTION(grpc_, server_register_method)                                                        \
    FUNCTION(grpc_, server_request_call)                                                           \
    FUNCTION(grpc_, server_request_registered_call)                                                \
    FUNCTION(grpc_, server_shutdown_and_notify)                                                    \
    FUNCTION(grpc_, server_start)                                                                  \
    FUNCTION(grpc_, shutdown_blocking)                                                             \
    FUNCTION(grpc_, slice_from_copied_buffer)                                                      \
    FUNCTION(grpc_, slice_from_copied_string)                                                      \
    FUNCTION(grpc_, slice_from_static_string)                                                      \
    FUNCTION(grpc_, slice_new_with_user_data)                                                      \
    FUNCTION(grpc_, slice_str_cmp)                                                                 \
    FUNCTION(grpc_, slice_to_c_string)                                                             \
    FUNCTION(grpc_, slice_unref)                                                                   \
    FUNCTION(grpc_, ssl_credentials_create)                                                        \
    FUNCTION(grpc_, ssl_server_credentials_create_ex)                                              \
    FUNCTION(grpc_, version_string)                                                                \
    FUNCTION(, gpr_free)                                                                           \
    FUNCTION(, gpr_inf_future)                                                                     \
    FUNCTION(, gpr_now)                                                                            \
    FUNCTION(, gpr_set_log_function)                                                               \
    FUNCTION(, gpr_time_add)                                                                       \
    FUNCTION(, gpr_time_cmp)                                                                       \
    FUNCTION(, gpr_time_from_nanos)                                                                \
    FUNCTION(, gpr_time_sub)

typedef struct bel_grpc_api {
#define FUNCTION(prefix, name) __typeof__(prefix##name) *name;
    BEL_GRPC_FUNCTIONS(FUNCTION)
#undef FUNCTION
} bel_grpc_api;

extern bel_grpc_api bel_grpc; // constant after the first bel_rpc_begin; NULLs before

// Opens the library, once per process, and starts gRPC; bel_grpc.shutdown_blocking ends gRPC. Any
// thread. FAILED_PRECONDITION: the library or a function is missing; names it, and says how to
// install it. RESOURCE_EXHAUSTED: too few threads.
bel_status *bel_rpc_begin(void) BEL_MUST_USE;

#endif
