// gRPC's library, opened on the first use: see api.h. It stays open until the process ends, since
// its threads may run until then. CMake gives the name of the library whose headers it found, so
// that library and headers agree. Its environment variable must be set before it is loaded. Each
// bel_rpc_begin must have its shutdown_blocking, after the last credential is gone.
#include "rpc/api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "base/thread.h"

bel_grpc_api bel_grpc;

static pthread_once_t open_once = PTHREAD_ONCE_INIT;
static char problem[256];

// gRPC's messages are only for debugging: relevant errors come as a status.
static void log_from_grpc(gpr_log_func_args *args)
{
    bel_log_write(BEL_LOG_DEBUG, "grpc: %s", args->message);
}

// A lookup also searches the libraries that this one needs, among them libgpr.
static void open_library(void)
{
    setenv("GRPC_EXPERIMENTS", "tcp_frame_size_tuning,tcp_rcv_lowat", 0);
    void *library = dlopen(BEL_GRPC_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        bel_snprintf(problem, sizeof problem, "%s", dlerror());
        return;
    }
    void *address;
#define FUNCTION(prefix, name)                                                                     \
    address = dlsym(library, #prefix #name);                                                       \
    memcpy(&bel_grpc.name, &address, sizeof address);                                              \
    if (address == NULL)                                                                           \
        bel_snprintf(problem, sizeof problem, BEL_GRPC_LIBRARY " has no function " #prefix #name);
    BEL_GRPC_FUNCTIONS(FUNCTION)
#undef FUNCTION
    if (problem[0] == '\0') bel_grpc.gpr_set_log_function(log_from_grpc);
}

bel_status *bel_rpc_begin(void)
{
    enum { THREADS = 10 }; // gRPC's number; if it cannot start one, it hangs silently
    pthread_once(&open_once, open_library);
    if (problem[0] != '\0')
        return BEL_ERR(
            BEL_FAILED_PRECONDITION,
            "%s; hint: jobs on several hosts, and models served over gRPC, need gRPC: apt-get "
            "install " BEL_GRPC_PACKAGE,
            problem);
    BEL_TRY(bel_thread_check_room(THREADS));
    bel_grpc.init();
    return NULL;
}
