// Verb serve: models answer over HTTP and gRPC until a signal. The main thread waits for signals
// and looks for new versions between them; all other threads have signals blocked. SIGTERM and
// SIGINT drain and end with code 0, a second one ends at once. SIGHUP looks for versions, reads
// labels and the token, and opens the access log again.
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_sched.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/trace.h"
#include "command/results.h"
#include "command/stores.h"
#include "command/verbs.h"
#include "serve/server.h"
#include "serve/trainings.h"

static const int handled[] = {SIGTERM, SIGINT, SIGHUP};

// A signal to end waits, so that no more versions are loaded.
static bool is_ending(void)
{
    sigset_t waiting;
    return sigpending(&waiting) == 0 &&
           (sigismember(&waiting, SIGTERM) == 1 || sigismember(&waiting, SIGINT) == 1);
}

static int ms_of(const bel_options *options, const char *name)
{
    return (int)(bel_options_double(options, name) * 1e3);
}

static int slots_of(const bel_options *options)
{
    int64_t threads = bel_options_int(options, "threads");
    return threads > 0 ? (int)threads : bel_available_cores();
}

// The last part of a path, without slashes at its end; NULL: it has no name there, as "." and "/".
// Free with bel_free.
static char *last_part(const char *path)
{
    size_t end = strlen(path), begin;
    while (end > 0 && path[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/'; begin--) {
    }
    char *part = bel_xstrndup(path + begin, end - begin);
    if (part[0] != '\0' && strcmp(part, ".") != 0 && strcmp(part, "..") != 0) return part;
    bel_free(part);
    return NULL;
}

static bel_status *add_path(const bel_options *options, const char *path, const char *name,
                            bel_trainings *trainings, bel_models *models)
{
    const bel_estimator *estimator;
    if (!bel_trainings_is_one(path)) return bel_models_add(models, path, name);
    BEL_TRY(bel_trainings_add(trainings, options, path, &estimator));
    return bel_models_add_training(models, estimator, path, name);
}

static bel_status *add_models(const bel_options *options, bel_trainings *trainings,
                              bel_models *models)
{
    size_t count, names;
    const char *const *paths = bel_options_arguments(options, &count);
    const char *const *name = bel_options_list(options, "name", &names);
    if (count == 0) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "expected folders of exports or trainings, or ONNX models, got none; hint: belfry "
            "export");
    }
    if (bel_options_is_given(options, "name") && names != count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--name: expected %zu names, one a path, got %zu",
                       count, names);
    }
    for (size_t i = 0; i < count; i++) {
        char *path, *last = NULL;
        BEL_TRY(bel_store_path_to_read(paths[i], true, &path));
        if (strcmp(path, paths[i]) != 0)
            bel_log_write(BEL_LOG_INFO, "%s: copied once; later versions are not seen", paths[i]);
        if (bel_dir_exists(path)) last = last_part(paths[i]); // the folder here has another name
        bel_status *status = add_path(options, path, names > 0 ? name[i] : last, trainings, models);
        bel_free(last);
        bel_free(path);
        BEL_TRY(status);
    }
    if (trainings->uses_package || !bel_options_is_given(options, "package")) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "--package has no effect here: it is for checkpoints, %s",
                   trainings->count > 0 ? "and these were trained with other models"
                                        : "and each path is an export");
}

// Says what protects an address that others can reach.
static void warn(const bel_options *options)
{
    const char *address = bel_options_string(options, "address");
    bool is_tls = bel_options_string(options, "tls_certificate") != NULL;
    bool has_token = bel_options_string(options, "token_file") != NULL;
    if (!has_token && bel_options_string(options, "tls_ca") == NULL) {
        bel_log_write(BEL_LOG_WARN,
                      "%s: anyone who reaches this address can send requests; hint: --token_file, "
                      "or --tls_ca for certificates of clients",
                      address);
    } else if (!is_tls) {
        bel_log_write(BEL_LOG_WARN,
                      "%s: anyone on the way can read the token; hint: --tls_certificate", address);
    }
}

static bel_status *announce(const bel_options *options, const bel_models *models,
                            const bel_server *server)
{
    const char *address = bel_options_string(options, "address");
    bel_str text = {0};
    for (int m = 0; m < bel_models_count(models); m++) {
        bel_model *model = bel_models_at(models, m);
        int count;
        int64_t *numbers = bel_model_versions(model, &count);
        bel_log_write(BEL_LOG_INFO, "model %s: version %lld answers", bel_model_name(model),
                      (long long)numbers[0]);
        bel_free(numbers);
    }
    if (strncmp(address, "127.", 4) != 0 && strcmp(address, "[::1]") != 0) warn(options);
    if (bel_server_port(server) >= 0)
        bel_str_printf(&text, "url %s://%s:%d\n",
                       bel_options_string(options, "tls_certificate") != NULL ? "https" : "http",
                       address, bel_server_port(server));
    if (bel_server_grpc_port(server) >= 0)
        bel_str_printf(&text, "grpc %s:%d\n", address, bel_server_grpc_port(server));
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    BEL_TRY(status);
    return bel_results_flush();
}

static bel_status *read_labels(const bel_options *options, bel_models *models)
{
    const char *path = bel_options_string(options, "labels");
    return path != NULL ? bel_models_read_labels(models, path) : NULL;
}

// Waits for a signal to end, and looks for versions meanwhile.
static void watch(const bel_options *options, const sigset_t *signals, bel_models *models,
                  bel_server *server)
{
    int poll_ms = ms_of(options, "poll_secs");
    bel_linux_give_way(); // a version that loads interrupts no request
    const struct timespec poll = {poll_ms / 1000, poll_ms % 1000 * 1000000L};
    for (;;) {
        int got = sigtimedwait(signals, NULL, &poll);
        if (got == SIGTERM || got == SIGINT) return;
        if (got == SIGHUP) {
            bel_server_reopen(server);
            bel_status *status = read_labels(options, models);
            if (status != NULL)
                bel_log_write(BEL_LOG_WARN, "the old labels stay in use: %s",
                              bel_status_message(status));
            bel_status_ignore(status); // logged
        }
        bel_models_scan(models);
    }
}

static bel_status *check_flags(const bel_options *options)
{
    if (bel_options_int(options, "batch_delay_us") > 0 && bel_options_int(options, "max_batch") < 2)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--batch_delay_us: expected --max_batch of 2 or more");
    bool certificate = bel_options_string(options, "tls_certificate") != NULL;
    bool key = bel_options_string(options, "tls_key") != NULL;
    if (certificate != key)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--tls_certificate and --tls_key: expected both or neither");
    bool has_http = bel_options_int(options, "port") >= 0;
    if (!has_http && bel_options_int(options, "grpc_port") < 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--port -1: expected --grpc_port");
    if (bel_options_string(options, "tls_ca") != NULL && !certificate)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--tls_ca: expected --tls_certificate and --tls_key");
    return bel_private_file_check(bel_options_string(options, "tls_key"), "tls_key");
}

static bel_status *serve(const bel_options *options, const sigset_t *signals,
                         bel_trainings *trainings, bel_models *models)
{
    const bel_server_config config = {
        .service = {.slots = slots_of(options),
                    .queue = (int)bel_options_int(options, "queue"),
                    .max_batch = (int)bel_options_int(options, "max_batch"),
                    .max_examples = (int)bel_options_int(options, "max_examples"),
                    .most_body = (size_t)bel_options_int(options, "max_body") << 20,
                    .delay_us = (int)bel_options_int(options, "batch_delay_us"),
                    .wait_ms = ms_of(options, "timeout_secs"),
                    .access_log = bel_options_string(options, "access_log"),
                    .token_file = bel_options_string(options, "token_file")},
        .address = bel_options_string(options, "address"),
        .port = (int)bel_options_int(options, "port"),
        .grpc_port = (int)bel_options_int(options, "grpc_port"),
        .idle_ms = ms_of(options, "idle_secs"),
        .connections = (int)bel_options_int(options, "connections"),
        .tls_ca = bel_options_string(options, "tls_ca"),
        .tls_certificate = bel_options_string(options, "tls_certificate"),
        .tls_key = bel_options_string(options, "tls_key")};
    bel_server *server;
    BEL_TRY(check_flags(options));
    BEL_TRY(add_models(options, trainings, models));
    BEL_TRY(read_labels(options, models));
    BEL_TRY(bel_server_start(&config, models, &server));
    bel_status *status = announce(options, models, server);
    if (status == NULL) watch(options, signals, models, server);
    pthread_sigmask(SIG_UNBLOCK, signals, NULL); // a second signal ends the process
    bel_log_write(BEL_LOG_INFO, "stopping: requests in progress are answered");
    int left = bel_server_stop(server, ms_of(options, "drain_secs"));
    if (left > 0) bel_log_write(BEL_LOG_WARN, "%d requests had no answer after --drain_secs", left);
    return status;
}

// Starts to record spans; the parts of the trace are in *out_folder until the end.
static bel_status *start_trace(const char *path, char **out_folder)
{
    *out_folder = NULL;
    if (path == NULL) return NULL;
    if (bel_dir_exists(path))
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected a file, got a folder", path);
    char *folder = bel_strf("%s.parts", path);
    bel_status *status = bel_trace_start(folder, "server");
    if (status != NULL) {
        bel_free(folder);
        return status;
    }
    *out_folder = folder;
    return NULL;
}

static void finish_trace(const char *path, char *folder)
{
    if (folder == NULL) return;
    bel_trace_stop();
    bel_status *status = bel_trace_merge(folder, path);
    if (status != NULL)
        bel_log_write(BEL_LOG_WARN, "there is no trace: %s; its parts are in %s",
                      bel_status_message(status), folder);
    else
        (void)rmdir(folder);   // unless another program has put files there
    bel_status_ignore(status); // logged
    bel_free(folder);
}

bel_status *bel_verb_serve(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // stays 0
    const char *cpus = bel_options_string(options, "cpus");
    const char *trace = bel_options_string(options, "trace");
    char *parts;
    if (cpus != NULL) BEL_TRY_CTX(bel_linux_run_on(cpus), "--cpus");
    BEL_TRY_CTX(start_trace(trace, &parts), "--trace");
    sigset_t signals;
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++)
        sigaddset(&signals, handled[i]);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    const bel_models_config config = {.slot_count = slots_of(options),
                                      .max_batch = (int)bel_options_int(options, "max_batch"),
                                      .keep = (int)bel_options_int(options, "keep_versions"),
                                      .is_interrupted = is_ending};
    bel_models *models = bel_models_create(&config);
    bel_trainings trainings = {0};
    bel_status *status = serve(options, &signals, &trainings, models);
    bel_models_destroy(models);
    bel_trainings_deinit(&trainings); // after the models
    finish_trace(trace, parts);
    return status;
}
