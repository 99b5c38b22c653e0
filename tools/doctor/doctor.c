// Verb doctor: checks whether this machine can train. It prints one line per check: ok, warn or
// fail, with the remedy. If a check cannot run, it warns or is omitted; the checks of the disk fail
// instead. Exit code 1 means a failed check: training would not work. A condition that only slows
// training down is a warning.
//
// Checks use what training uses. The product is Belfry's kernel on one thread, the disk is the
// nearest existing folder on the path to --model_dir, and the sync uses the writer of checkpoints.
// With --cluster the checks of doctor_cluster.c follow.
#include "doctor/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/isa.h"
#include "base/json.h"
#include "base/linux_processor.h"
#include "base/linux_sched.h"
#include "base/number.h"
#include "base/str.h"
#include "base/thread.h"
#include "command/results.h"
#include "command/verbs.h"
#include "cuda/cuda.h"
#include "ops/kernels/product.h"
#include "rpc/api.h"
#include "store/store.h"

void bel_doctor_report(bel_doctor *d, bel_doctor_level level, const char *name, const char *text,
                       const char *fix)
{
    static const char *const names[] = {"ok", "warn", "fail"};
    d->fail_count += level == BEL_DOCTOR_FAIL;
    if (!d->json) {
        bel_str_printf(&d->out, "%-4s  %-10s  %s\n", names[level], name, text);
        if (fix != NULL) bel_str_printf(&d->out, "%18s-> %s\n", "", fix);
        return;
    }
    bel_str_puts(&d->out, d->check_count++ > 0 ? "," : "{\"checks\":[");
    bel_str_printf(&d->out, "{\"name\":\"%s\",\"level\":\"%s\",\"text\":", name, names[level]);
    bel_json_write_string(&d->out, text);
    bel_str_puts(&d->out, ",\"fix\":");
    fix != NULL ? bel_json_write_string(&d->out, fix) : bel_str_puts(&d->out, "null");
    bel_str_puts(&d->out, "}");
}

// --- Processor ----------------------------------------------------------------------------------

// Reads the text after ':' of the first line that begins with `key`, such as "MemTotal".
static bool proc_value(const char *path, const char *key, char *out_text, size_t size)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    char line[256];
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        found = colon != NULL && strncmp(line, key, strlen(key)) == 0;
        if (!found) continue;
        colon += 1 + strspn(colon + 1, " \t");
        bel_snprintf(out_text, size, "%.*s", (int)strcspn(colon, "\n"), colon);
    }
    fclose(file);
    return found;
}

static bool has_kernels(void)
{
    char lacks[BEL_ISA_TEXT];
    return bel_isa_lacks(BEL_ISA_LEAST, lacks)[0] == '\0';
}

static void check_processor(bel_doctor *d)
{
    const char *slow = "without fused multiply-add training is tens of times slower";
    char name[128], text[192 + BEL_ISA_TEXT], lacks[BEL_ISA_TEXT], hint[160];
    bel_linux_processor_name(name, sizeof name);
    bel_isa isa = bel_isa_get();
    if (!has_kernels()) {
        bel_snprintf(text, sizeof text, "%s, lacks %s", name, bel_isa_lacks(BEL_ISA_LEAST, lacks));
        bel_snprintf(hint, sizeof hint,
                     "Belfry's kernels need %s; does the virtual machine hide it?",
                     bel_isa_title(BEL_ISA_LEAST));
        bel_doctor_report(d, BEL_DOCTOR_FAIL, "processor", text, hint);
        return;
    }
    bool lacking = bel_isa_lacks(BEL_ISA_FAST, lacks)[0] != '\0';
    bel_snprintf(text, sizeof text, "%s, kernels for %s%s%s", name, bel_isa_title(isa),
                 lacking ? ", lacks " : "", lacks);
    bel_snprintf(hint, sizeof hint, "%s%s", slow,
                 lacking ? "; does the virtual machine hide it?" : ": BELFRY_ISA is set");
    bool warn = (int)isa < (int)BEL_ISA_FAST;
    bel_doctor_report(d, warn ? BEL_DOCTOR_WARN : BEL_DOCTOR_OK, "processor", text,
                      warn ? hint : NULL);
}

// Measures products of 512 x 512 matrices on one thread, for at least a tenth of a second.
static double measure_gflops(void)
{
    enum { N = 512 };
    float *a = bel_xcalloc(N * N, sizeof *a), *b = bel_xcalloc(N * N, sizeof *b);
    float *c = bel_xcalloc(N * N, sizeof *c);
    for (int i = 0; i < N * N; i++)
        a[i] = b[i] = (float)(i % 7) * 0.25f;
    const bel_product product = {.m = N,
                                 .n = N,
                                 .k = N,
                                 .a = a,
                                 .a_row = N,
                                 .a_column = 1,
                                 .b = b,
                                 .b_row = N,
                                 .b_column = 1,
                                 .y = c,
                                 .y_row = N};
    int64_t count = -1, start = 0; // the first product is warm-up
    do {
        bel_product_run(&product);
        if (++count == 0) start = bel_clock_ns();
    } while (count == 0 || bel_clock_ns() - start < 100000000);
    double seconds = (double)(bel_clock_ns() - start) * 1e-9;
    bel_free(a);
    bel_free(b);
    bel_free(c);
    return 2.0 * N * N * N * (double)count / seconds * 1e-9;
}

static void check_products(bel_doctor *d)
{
    char text[160];
    if (!has_kernels()) return;
    bel_snprintf(text, sizeof text, "%.1f GFLOP/s on one thread", measure_gflops());
    bel_doctor_report(d, BEL_DOCTOR_OK, "products", text, NULL);
}

static void check_cores(bel_doctor *d)
{
    char text[128];
    int usable = bel_available_cores(), allowed = bel_linux_affinity_cores();
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    bel_snprintf(text, sizeof text, "%d usable (%ld in the machine, %d in the affinity mask)",
                 usable, all, allowed);
    bel_doctor_report(d, BEL_DOCTOR_OK, "cores", text,
                      usable < allowed ? "a cgroup's quota holds back the others" : NULL);
}

// --- GPUs ---------------------------------------------------------------------------------------

static void check_gpu(bel_doctor *d, int index)
{
    bel_cuda_card card;
    bel_device *device;
    char text[256], bytes[32], versions[BEL_CUDA_TEXT];
    bel_status *status = bel_cuda_card_at(index, &card);
    if (status == NULL) status = bel_cuda_device_get(index, &device);
    if (status != NULL) {
        bel_doctor_report(d, BEL_DOCTOR_WARN, "gpu", bel_status_message(status),
                          "train on others: --gpus; or on the processor: --device cpu");
        bel_status_destroy(status);
        return;
    }
    bel_snprintf(text, sizeof text, "%d: %s, %s, compute capability %d.%d, at %s; %s", index,
                 card.name, bel_bytes_text(card.memory_bytes, bytes), card.major, card.minor,
                 card.pci, bel_cuda_version_text(versions));
    bel_doctor_report(d, BEL_DOCTOR_OK, "gpu", text, NULL);
}

// The libraries are only needed for fast arithmetic.
static void check_fast(bel_doctor *d)
{
    char text[BEL_CUDA_TEXT];
    bel_status *status = bel_cuda_open_fast(text);
    if (status != NULL) {
        bel_snprintf(text, sizeof text, "only exact: %s", bel_status_message(status));
        bel_status_destroy(status);
    }
    bel_doctor_report(d, BEL_DOCTOR_OK, "gpu_math", text, NULL);
}

// A machine without GPUs passes, because towers are then shares of the cores. An unusable GPU does
// not.
static void check_gpus(bel_doctor *d)
{
    int count;
    bel_status *status = bel_cuda_count(&count);
    if (status != NULL) {
        bool none = bel_status_code(status) == BEL_NOT_FOUND;
        char text[BEL_CUDA_TEXT];
        bel_snprintf(text, sizeof text, "none: %s", bel_status_message(status));
        bel_doctor_report(d, none ? BEL_DOCTOR_OK : BEL_DOCTOR_WARN, "gpu", text, NULL);
        bel_status_destroy(status);
    }
    for (int i = 0; i < count; i++)
        check_gpu(d, i);
    if (count > 0) check_fast(d);
}

// --- Memory and limits --------------------------------------------------------------------------

static bool proc_kib(const char *key, uint64_t *out_bytes)
{
    char text[64];
    int64_t kib;
    if (!proc_value("/proc/meminfo", key, text, sizeof text)) return false;
    if (!bel_parse_i64(text, strcspn(text, " "), &kib) || kib < 0) return false;
    *out_bytes = (uint64_t)kib * 1024;
    return true;
}

bool bel_doctor_memory(uint64_t *out_total)
{
    return proc_kib("MemTotal", out_total);
}

static void check_memory(bel_doctor *d)
{
    enum { LITTLE = 512 << 20 };
    uint64_t total, available, limit = bel_cgroup_memory_limit("");
    char text[160], total_text[32], available_text[32], limit_text[64] = "";
    if (!proc_kib("MemTotal", &total) || !proc_kib("MemAvailable", &available)) {
        bel_doctor_report(d, BEL_DOCTOR_WARN, "memory", "/proc/meminfo does not say",
                          "mount /proc");
        return;
    }
    if (limit < total) { // without a limit, version 1 reports a huge number
        char least[32];
        bel_snprintf(limit_text, sizeof limit_text, ", of which a cgroup leaves %s",
                     bel_bytes_text(limit, least));
    }
    bel_snprintf(text, sizeof text, "%s available of %s%s",
                 bel_bytes_text(available, available_text), bel_bytes_text(total, total_text),
                 limit_text);
    const char *hint = available < LITTLE ? "end other programs"
                       : limit < LITTLE   ? "raise the limit of the container or service"
                                          : NULL;
    bel_doctor_report(d, hint != NULL ? BEL_DOCTOR_WARN : BEL_DOCTOR_OK, "memory", text, hint);
}

static void check_open_files(bel_doctor *d)
{
    struct rlimit limit;
    char text[64];
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    bool little = limit.rlim_cur < 1024;
    bel_snprintf(text, sizeof text, "%llu open files allowed", (unsigned long long)limit.rlim_cur);
    bel_doctor_report(d, little ? BEL_DOCTOR_WARN : BEL_DOCTOR_OK, "files", text,
                      little ? "ulimit -n 4096" : NULL);
}

// Each process of a job has some 15 threads besides those that compute. Root has no limit per user.
static void check_threads(bel_doctor *d)
{
    enum { LITTLE = 500 };
    struct rlimit of_user = {.rlim_cur = RLIM_INFINITY};
    uint64_t limit = bel_cgroup_thread_limit("");
    char text[96];
    if (getuid() != 0) (void)getrlimit(RLIMIT_NPROC, &of_user); // root: no such limit
    bool by_user = of_user.rlim_cur != RLIM_INFINITY && (uint64_t)of_user.rlim_cur < limit;
    if (by_user) limit = (uint64_t)of_user.rlim_cur;
    if (limit == UINT64_MAX) {
        bel_doctor_report(d, BEL_DOCTOR_OK, "threads", "processes and threads without a limit",
                          NULL);
        return;
    }
    bool little = limit < LITTLE;
    bel_snprintf(text, sizeof text, "%llu processes and threads allowed by %s",
                 (unsigned long long)limit, by_user ? "ulimit -u" : "a cgroup");
    bel_doctor_report(d, little ? BEL_DOCTOR_WARN : BEL_DOCTOR_OK, "threads", text,
                      !little   ? NULL
                      : by_user ? "ulimit -u 4096"
                                : "raise the limit of the container or service");
}

// gRPC is opened only by jobs on several hosts and by `belfry serve --grpc_port`.
static void check_grpc(bel_doctor *d)
{
    char text[96];
    bel_status *status = bel_rpc_begin();
    if (status != NULL) {
        bel_doctor_report(d, BEL_DOCTOR_WARN, "grpc", bel_status_message(status), NULL);
        bel_status_destroy(status);
        return;
    }
    bel_snprintf(text, sizeof text, "gRPC's core %s can be opened", bel_grpc.version_string());
    bel_doctor_report(d, BEL_DOCTOR_OK, "grpc", text, NULL);
    bel_grpc.shutdown_blocking();
}

// --- Disk ---------------------------------------------------------------------------------------

// Returns the nearest existing folder on the path to model_dir; free with bel_free.
static char *existing_folder(const char *path)
{
    char *folder = bel_xstrdup(path != NULL ? path : ".");
    while (!bel_file_exists(folder)) {
        char *slash = strrchr(folder, '/');
        if (slash == NULL) {
            bel_free(folder);
            return bel_xstrdup(".");
        }
        slash[slash == folder ? 1 : 0] = '\0';
    }
    return folder;
}

static void check_disk_free(bel_doctor *d)
{
    enum { LITTLE = 1 << 30 };
    struct statvfs info;
    char bytes[32];
    if (statvfs(d->folder, &info) != 0) {
        bel_doctor_report(d, BEL_DOCTOR_FAIL, "disk", strerror(errno),
                          "choose another --model_dir");
        return;
    }
    uint64_t free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    bool little = free_bytes < LITTLE;
    char *text = bel_strf("%s free in %s", bel_bytes_text(free_bytes, bytes), d->folder);
    bel_doctor_report(d, little ? BEL_DOCTOR_WARN : BEL_DOCTOR_OK, "disk", text,
                      little ? "make room for checkpoints" : NULL);
    bel_free(text);
}

// Measures the time to sync 64 KiB to disk: each checkpoint waits for a few of these.
static void check_disk_sync(bel_doctor *d)
{
    enum { SIZE = 65536 };
    char *name = bel_strf(".belfry-doctor-%ld", (long)getpid());
    char *path = bel_path_join(d->folder, name);
    char *data = bel_xcalloc(SIZE, 1);
    int64_t start = bel_clock_ns();
    bel_file_writer *writer;
    bel_status *status = bel_file_writer_open(path, &writer);
    if (status == NULL) {
        bel_file_writer_write(writer, data, SIZE);
        status = bel_file_writer_finish(writer, NULL, NULL);
        unlink(path);
    }
    double ms = (double)(bel_clock_ns() - start) * 1e-6;
    if (status != NULL) {
        bel_doctor_report(d, BEL_DOCTOR_FAIL, "sync", bel_status_message(status),
                          "choose another --model_dir");
        bel_status_destroy(status);
    } else {
        char text[64];
        bool slow = ms > 200;
        bel_snprintf(text, sizeof text, "%.1f ms to have 64 KiB on disk", ms);
        bel_doctor_report(d, slow ? BEL_DOCTOR_WARN : BEL_DOCTOR_OK, "sync", text,
                          slow ? "save less often: --save_checkpoints_secs" : NULL);
    }
    bel_free(data);
    bel_free(path);
    bel_free(name);
}

bel_status *bel_verb_doctor(const bel_options *options, int *out_exit_code)
{
    static void (*const checks[])(bel_doctor *) = {
        check_processor,  check_products, check_cores, check_gpus,      check_memory,
        check_open_files, check_threads,  check_grpc,  check_disk_free, check_disk_sync,
    };
    size_t count;
    const char *const *urls = bel_options_arguments(options, &count);
    for (size_t i = 0; i < count; i++) {
        if (bel_store_is_url(urls[i])) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "doctor: expected a URL of data (s3://, gs://, http://, https://), got "
                       "\"%s\"",
                       urls[i]);
    }
    const char *model_dir = bel_options_string(options, "model_dir");
    const char *cluster = bel_options_string(options, "cluster");
    char *folder = existing_folder(model_dir);
    bel_doctor d = {
        .json = bel_options_bool(options, "json"), .folder = folder, .model_dir = model_dir};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        checks[i](&d);
    if (model_dir != NULL && bel_store_is_url(bel_options_text(options, "model_dir")))
        bel_doctor_check_store(&d, bel_options_text(options, "model_dir"));
    for (size_t i = 0; i < count; i++)
        bel_doctor_check_data(&d, urls[i]);
    if (cluster != NULL) bel_doctor_check_cluster(&d, cluster);
    if (d.json) bel_str_printf(&d.out, "],\"ok\":%s}\n", d.fail_count == 0 ? "true" : "false");
    bel_status *status = bel_results_write(d.out.text);
    if (d.fail_count > 0) *out_exit_code = 1;
    bel_str_deinit(&d.out);
    bel_free(folder);
    return status;
}
