// Processor time and memory of each role of a job with many workers, without their computing: a
// real master, real shards, and hollow workers in this process (hollow_workers.c). A shard's time
// is that of all shards for each worker and step, and a worker's time this process's. All figures
// are of the steps after the warm-up. Memory is at the last version: the peak, and the process's
// share of what it shares with others (PSS); a worker's is this process's growth by all of them.
// Frames and bytes must be those that the layout predicts (step_counts.h); else the exit code is 1.
// With --fan_in the workers' relays are real ones (ps/relay), in this process, each with separate
// memory. Frames and bytes are then those of the workers, to relays and shards. The time of this
// process is also printed by its threads: workers', relays', and gRPC's.
// With --plan it also predicts processor time and step as `belfry plan` does (tools/plan), from the
// figures that a plan has kept in that folder: $XDG_STATE_HOME/belfry/plan.
// With --drops all connections of the workers are broken N times while they train: the processor
// time of all processes until all are back, and the calls and streams that this takes.
// usage: bench_hollow WORKERS SHARDS VARIABLES [--parameters N] [--lane shm|grpc]
//        [--exchange_precision f32|bf16|int8] [--fan_in N] [--drops N] [--steps N] [--plan FOLDER]
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/secret.h"
#include "base/str.h"
#include "hollow.h"
#include "mlp.h"
#include "plan/calibration.h"
#include "plan/place.h"
#include "ps/layout/fan_in.h"
#include "ps/layout/step_counts.h"

extern char **environ;

enum { MOST_SHARDS = 1024, UNIT = 8 /* elements of a variable, unless --parameters */ };

static hollow_job job = {.steps = 100};

// --- The model -----------------------------------------------------------------------------------

// The loss depends on the first variable only: the others' gradients are zero, as all reports are.
static bel_status *model_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *loss = bel_mean(g, bel_context_feature(context, "x"));
    for (int64_t v = 0; v < job.variable_count; v++) {
        char name[32];
        int64_t elements = (job.parameters + v) / job.variable_count;
        bel_shape shape = BEL_SHAPE(elements);
        snprintf(name, sizeof name, "variable_%lld", (long long)v);
        bel_value *value = bel_variable(g, name, &shape, (bel_initializer){.kind = BEL_INIT_ZEROS},
                                        BEL_VARIABLE_TRAINABLE);
        if (v == 0) loss = bel_add(g, loss, bel_mean(g, value));
    }
    bel_loss_set(spec, loss);
    const bel_optimizer sgd = {
        .size = sizeof sgd, .kind = BEL_OPTIMIZER_SGD, .learning_rate = 1e-6};
    bel_optimizer_use(spec, NULL, &sgd);
    return NULL;
}

static bel_status *input_fn(void *user, const bel_estimator *estimator, bel_mode mode,
                            bel_dataset **out_dataset)
{
    static float x[1];
    (void)user, (void)estimator, (void)mode;
    const bel_memory_field fields[] = {{"x", {BEL_DTYPE_F32, BEL_SHAPE(1, 1), x}}};
    *out_dataset = bel_dataset_from_memory(fields, 1);
    bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, 1);
    return NULL;
}

static bel_status *make_estimator(bel_train_spec *out_spec, bel_estimator **out_estimator)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = job.folder;
    config.min_shard_bytes = 0;
    config.lane = job.grpc ? BEL_LANE_GRPC : BEL_LANE_SHM;
    config.exchange_precision = job.precision;
    config.fan_in = job.fan_in;
    config.report = false;
    config.save_summary_steps = 0;
    config.save_checkpoints_secs = 0;
    *out_spec = (bel_train_spec){
        .size = sizeof *out_spec, .input_fn = input_fn, .max_steps = job.steps + job.steps / 10};
    return bel_estimator_create(model_fn, &config, NULL, 0, out_estimator);
}

// In a process that this program has started: the master, or a shard.
static int play_role(void)
{
    bel_train_spec spec;
    bel_estimator *estimator;
    bel_status *status = make_estimator(&spec, &estimator);
    return status != NULL ? bench_end(status) : bel_run_job(estimator, &spec, NULL, 0, NULL);
}

// --- Processes -----------------------------------------------------------------------------------

typedef struct process {
    bel_linux_process process;
    int64_t processor_ns[HOLLOW_MOMENTS];
    double peak_mb, pss_mb; // at the last version
} process;

// Processor time of this process by the names of its threads.
typedef enum thread_kind { WORKERS, RELAYS, OTHERS, THREAD_KINDS } thread_kind;

typedef struct figures {
    process *roles; // the master, then the shards
    int role_count;
    int64_t own_ns[HOLLOW_MOMENTS], at_ns[HOLLOW_MOMENTS];
    int64_t kind_ns[HOLLOW_MOMENTS][THREAD_KINDS];
    double bare_mb, own_mb;                      // this process without and with workers
    int64_t drop_ns, drop_wall_ns, most_drop_ns; // all drops: processor time, and time
} figures;

// Returns a port of the loopback that is free now.
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    BEL_CHECK(descriptor >= 0 && bind(descriptor, (struct sockaddr *)&address, size) == 0);
    BEL_CHECK(getsockname(descriptor, (struct sockaddr *)&address, &size) == 0);
    close(descriptor);
    return ntohs(address.sin_port);
}

// Lanes of gRPC are those between hosts, so the job has ports, and otherwise unix sockets.
static char *task_text(bel_role role, int index)
{
    static int port;
    if (port == 0) port = free_port();
    char *master =
        job.grpc ? bel_strf("127.0.0.1:%d", port) : bel_strf("unix:%s/master", job.folder);
    char *listen = role == BEL_ROLE_MASTER ? bel_xstrdup(master)
                   : job.grpc              ? bel_xstrdup("127.0.0.1:0")
                              : bel_strf("unix:%s/%s-%d", job.folder, bel_role_name(role), index);
    char name[] = "hollow";
    const bel_task task = {.job = name,
                           .role = role,
                           .index = index,
                           .local_rank = role == BEL_ROLE_WORKER ? 0 : -1,
                           .local_size = job.worker_count,
                           .worker_count = job.worker_count,
                           .ps_count = job.shard_count,
                           .master_address = master,
                           .listen_address = listen,
                           .thread_count = 1,
                           .join_timeout_secs = 300,
                           .silence_timeout_secs = 60,
                           .recovers = job.drops > 0,
                           .supervisor = (int64_t)getpid()};
    bel_str text = {0};
    bel_task_write(&task, &text);
    bel_free(master);
    bel_free(listen);
    return text.text;
}

// Sets this process's task, so that the model is that of the job's processes.
static void take_task(bel_role role, int index)
{
    char *text = task_text(role, index);
    setenv("BELFRY_TASK", text, 1);
    setenv("BELFRY_MODEL_DIR", job.folder, 1);
    bel_free(text);
}

static bel_status *start_role(char **arguments, int log, bel_role role, int index,
                              process *out_process)
{
    take_task(role, index);
    char *program = bel_linux_program();
    const bel_linux_spawn spawn = {.program = program,
                                   .arguments = arguments,
                                   .environment = environ,
                                   .standard = {-1, log, log}};
    bel_status *status = bel_linux_process_spawn(&spawn, &out_process->process);
    bel_free(program);
    return status;
}

static int64_t processor_ns(int64_t pid)
{
    clockid_t clock;
    return clock_getcpuclockid((pid_t)pid, &clock) == 0 ? bel_clock_processor_ns(clock) : 0;
}

// Reads "NAME:  123 kB" of a file in /proc/PID as MB; 0: the process is gone.
static double memory_mb(int64_t pid, const char *file, const char *name)
{
    char path[64], line[256];
    long long kb = 0;
    snprintf(path, sizeof path, "/proc/%lld/%s", (long long)pid, file);
    FILE *stream = fopen(path, "r");
    if (stream == NULL) return 0;
    size_t length = strlen(name);
    while (fgets(line, sizeof line, stream) != NULL)
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            kb = strtoll(line + length + 1, NULL, 10);
    fclose(stream);
    return (double)kb / 1024;
}

// Reads a file in /proc/self/task/TASK.
static void read_task(const char *task, const char *file, char text[64])
{
    char path[320];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", task, file);
    FILE *stream = fopen(path, "r");
    text[0] = '\0';
    if (stream == NULL) return; // the thread is gone
    if (fgets(text, 64, stream) == NULL) text[0] = '\0';
    fclose(stream);
}

static void look_at_threads(int64_t ns[THREAD_KINDS])
{
    DIR *folder = opendir("/proc/self/task");
    for (int k = 0; k < THREAD_KINDS; k++)
        ns[k] = 0;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char name[64], times[64]; // times: on a processor, waiting for one, turns
        if (entry->d_name[0] == '.') continue;
        read_task(entry->d_name, "comm", name);
        read_task(entry->d_name, "schedstat", times);
        bool worker = strcmp(name, HOLLOW_WORKERS "\n") == 0;
        bool relay = strcmp(name, HOLLOW_RELAYS "\n") == 0;
        ns[worker ? WORKERS : relay ? RELAYS : OTHERS] += strtoll(times, NULL, 10);
    }
    if (folder != NULL) (void)closedir(folder);
}

// Adds what the last drop has cost.
static void add_drop(figures *f)
{
    int64_t spent = f->own_ns[HOLLOW_BACK] - f->own_ns[HOLLOW_DROP];
    for (int i = 0; i < f->role_count; i++)
        spent += f->roles[i].processor_ns[HOLLOW_BACK] - f->roles[i].processor_ns[HOLLOW_DROP];
    f->drop_ns += spent;
    f->drop_wall_ns += f->at_ns[HOLLOW_BACK] - f->at_ns[HOLLOW_DROP];
    if (spent > f->most_drop_ns) f->most_drop_ns = spent;
}

// Every connected socket of this process belongs to a stream.
static void break_connections(void)
{
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        int descriptor = atoi(entry->d_name);
        struct sockaddr_storage peer;
        socklen_t size = sizeof peer;
        if (getpeername(descriptor, (struct sockaddr *)&peer, &size) == 0)
            (void)shutdown(descriptor, SHUT_RDWR);
    }
    if (folder != NULL) (void)closedir(folder);
}

static void look(void *context, hollow_moment moment)
{
    figures *f = context;
    f->at_ns[moment] = bel_clock_ns();
    f->own_ns[moment] = processor_ns(getpid());
    if (moment <= HOLLOW_LAST) look_at_threads(f->kind_ns[moment]);
    for (int i = 0; i < f->role_count; i++) {
        process *p = &f->roles[i];
        p->processor_ns[moment] = processor_ns(p->process.pid);
        if (moment != HOLLOW_LAST) continue;
        p->peak_mb = memory_mb(p->process.pid, "status", "VmHWM");
        p->pss_mb = memory_mb(p->process.pid, "smaps_rollup", "Pss");
    }
    if (moment == HOLLOW_DROP) break_connections();
    if (moment == HOLLOW_BACK) add_drop(f);
    if (moment == HOLLOW_LAST) f->own_mb = memory_mb(getpid(), "status", "VmRSS");
}

static bel_status *start_roles(char **arguments, figures *f)
{
    char *path = bel_path_join(job.folder, "log");
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    bel_status *status = NULL;
    for (int i = 0; i < f->role_count && status == NULL; i++)
        status = start_role(arguments, log, i == 0 ? BEL_ROLE_MASTER : BEL_ROLE_PS,
                            i == 0 ? 0 : i - 1, &f->roles[i]);
    bel_free(path);
    (void)close(log);
    return status;
}

// After an error: what the processes have written.
static void show_log(void)
{
    char *path = bel_path_join(job.folder, "log"), *text = NULL;
    size_t size;
    bel_status_ignore(bel_file_read(path, &text, &size)); // the error was shown
    if (text != NULL) fputs(text, stderr);
    bel_free(text);
    bel_free(path);
}

static bel_status *await_roles(figures *f)
{
    enum { PATIENCE_MS = 60000 };
    for (int i = 0; i < f->role_count; i++) {
        bel_linux_end end;
        if (!bel_linux_process_wait(&f->roles[i].process, PATIENCE_MS, &end))
            return BEL_ERR(BEL_DEADLINE_EXCEEDED, "process %d does not end", i);
        if (end.code != 0)
            return BEL_ERR(BEL_INTERNAL, "process %d ended with exit code %d", i, end.code);
    }
    return NULL;
}

// --- The table -----------------------------------------------------------------------------------

// Without relays a worker's time is all its threads'. A relay has all reporters but its first one
// over gRPC.
static void print_threads(const figures *f, const hollow_counts *counts)
{
    double us[THREAD_KINDS], steps = (double)job.steps, workers = job.worker_count;
    for (int k = 0; k < THREAD_KINDS; k++)
        us[k] = (double)(f->kind_ns[HOLLOW_LAST][k] - f->kind_ns[HOLLOW_WARM][k]) * 1e-3 / steps;
    printf("threads of a worker %.1f µs, of relays %.1f, gRPC's %.1f, for each worker and step",
           us[WORKERS] / workers, us[RELAYS] / workers, us[OTHERS] / workers);
    if (job.fan_in > 0)
        printf("; fan_in %lld: %lld relays, %.1f µs for each reporter of one",
               (long long)job.fan_in, (long long)counts->relays,
               counts->reporters > 0 ? us[RELAYS] / (double)counts->reporters : 0);
    printf("\n");
}

static void print_figures(const figures *f, const hollow_counts *counts)
{
    double peak = 0, pss = 0, shards_ns = 0, all = (double)job.steps * job.worker_count;
    const process *master = &f->roles[0];
    for (int i = 1; i < f->role_count; i++) {
        const process *p = &f->roles[i];
        peak = p->peak_mb > peak ? p->peak_mb : peak;
        pss = p->pss_mb > pss ? p->pss_mb : pss;
        shards_ns += (double)(p->processor_ns[HOLLOW_LAST] - p->processor_ns[HOLLOW_WARM]);
    }
    double wall_ns = (double)(f->at_ns[HOLLOW_LAST] - f->at_ns[HOLLOW_WARM]);
    double master_ns =
        (double)(master->processor_ns[HOLLOW_LAST] - master->processor_ns[HOLLOW_WARM]);
    double own_ns = (double)(f->own_ns[HOLLOW_LAST] - f->own_ns[HOLLOW_WARM]);
    printf("| workers | shards | variables | parameters | lanes | master MB, PSS | shard MB, PSS | "
           "worker kB | shards µs | worker µs | master's share | ms a step | setup B |\n"
           "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    printf("| %d | %d | %lld | %lld | %s | %.1f, %.1f | %.1f, %.1f | %.0f | %.1f | %.1f | %.3f | "
           "%.2f | %lld |\n",
           job.worker_count, job.shard_count, (long long)job.variable_count,
           (long long)job.parameters, job.grpc ? "grpc" : "shm", master->peak_mb, master->pss_mb,
           peak, pss, (f->own_mb - f->bare_mb) * 1024 / job.worker_count, shards_ns / all * 1e-3,
           own_ns / all * 1e-3, master_ns / wall_ns, wall_ns * 1e-6 / (double)job.steps,
           (long long)counts->setup_bytes);
    printf("frames %lld and %lld, bytes %lld and %lld, to and from the shards, %lld versions; "
           "%lld calls of the master, %lld at most by a worker\n",
           (long long)counts->sent, (long long)counts->received, (long long)counts->sent_bytes,
           (long long)counts->received_bytes, (long long)counts->versions, (long long)counts->calls,
           (long long)counts->most_calls);
    double drops = (double)job.drops;
    if (job.drops > 0)
        printf(
            "drops %lld: %.2f s of processor each, %.2f at most, %.2f s; %lld calls of the master "
            "and %lld streams of a lane at most\n",
            (long long)job.drops, (double)f->drop_ns * 1e-9 / drops, (double)f->most_drop_ns * 1e-9,
            (double)f->drop_wall_ns * 1e-9 / drops, (long long)counts->most_drop_calls,
            (long long)counts->most_drop_streams);
    print_threads(f, counts);
}

// Predicts the same steps as `belfry plan`: the workers compute nothing.
static bel_status *print_planned(const figures *f, const bel_trainable *t)
{
    bel_machine_figures machine;
    bel_figure list[BEL_FIGURES_MOST];
    size_t count = bel_machine_list(&machine, list);
    if (!bel_calibration_read(job.plan, "machine", list, count))
        return BEL_ERR(BEL_NOT_FOUND, "no figures of this machine in %s; hint: belfry plan",
                       job.plan);
    bel_cluster *cluster = bel_cluster_create(job.worker_count, job.shard_count, 0);
    bel_plan *plan;
    BEL_TRY(bel_plan_create(cluster, 1, 1, &plan));
    const bel_place_config config = {.layout = t->layout,
                                     .stats = t->stats,
                                     .rounding = bel_trainable_rounding(t),
                                     .grpc = job.grpc,
                                     .fan_in = (int)job.fan_in};
    bel_place place;
    bel_place_init(&place, plan, &config);
    const bel_cost cost = bel_cost_of(&place.deal, &machine.rates);
    bel_place_deinit(&place);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);
    double shards_ns = 0, all = (double)job.steps * job.worker_count;
    for (int i = 1; i < f->role_count; i++)
        shards_ns +=
            (double)(f->roles[i].processor_ns[HOLLOW_LAST] - f->roles[i].processor_ns[HOLLOW_WARM]);
    double own_ns = (double)(f->own_ns[HOLLOW_LAST] - f->own_ns[HOLLOW_WARM]);
    double wall_ns = (double)(f->at_ns[HOLLOW_LAST] - f->at_ns[HOLLOW_WARM]);
    double planned_own = cost.processor_ns[BEL_COST_WORKER] + cost.processor_ns[BEL_COST_RELAY];
    double planned_shards = cost.processor_ns[BEL_COST_SHARD], n = job.worker_count;
    printf("planned and measured: shards %.1f and %.1f µs, worker %.1f and %.1f µs, all %.1f and "
           "%.1f µs, step %.3f and %.3f ms\n",
           planned_shards / n * 1e-3, shards_ns / all * 1e-3, planned_own / n * 1e-3,
           own_ns / all * 1e-3, (planned_shards + planned_own) / n * 1e-3,
           (shards_ns + own_ns) / all * 1e-3, cost.step_ns * 1e-6,
           wall_ns / (double)job.steps * 1e-6);
    return NULL;
}

// Compares the counts of all lanes with those that `belfry plan` predicts.
static bel_status *check_counts(const hollow_counts *counts, const bel_trainable *t)
{
    const bel_lane_kind kind = {
        .in_place = !job.grpc, .rounding = bel_trainable_rounding(t), .stats = t->stats};
    int *replicas_of = bel_xcalloc((size_t)job.worker_count, sizeof *replicas_of);
    for (int w = 0; w < job.worker_count; w++)
        replicas_of[w] = 1;
    bel_assignment *assignment = bel_assignment_create(replicas_of, job.worker_count);
    bel_fan_in *tree = bel_fan_in_create(assignment, &(bel_fan_in_rule){.fan_in = (int)job.fan_in});
    bel_layout *joined = bel_layout_join(t->layout);
    int64_t steps = counts->versions - 1, sent = 0, sent_bytes = 0, received = 0,
            received_bytes = 0;
    for (int w = 0; w < job.worker_count; w++) {
        bel_fan_in_place place = bel_fan_in_place_of(tree, w, 0);
        bel_reporters reporters = bel_fan_in_beside(tree, &place);
        const bel_layout *layout = place.worker >= 0 ? joined : t->layout;
        bel_lane_kind lane = kind;
        lane.in_place = kind.in_place || place.worker == w;
        for (int k = 0; k < layout->shard_count; k++) {
            const bel_lane_counts start = bel_start_counts(layout, k, lane);
            const bel_lane_counts step =
                bel_step_counts(layout, reporters.assignment, place.index, k, lane);
            sent += start.up_frames + steps * step.up_frames;
            sent_bytes += start.up_bytes + steps * step.up_bytes;
            received += start.down_frames + steps * step.down_frames;
            received_bytes += start.down_bytes + steps * step.down_bytes;
        }
        bel_reporters_deinit(&reporters);
    }
    bel_layout_destroy_joined(joined);
    bel_fan_in_destroy(tree);
    bel_assignment_destroy(assignment);
    bel_free(replicas_of);
    if (sent == counts->sent && sent_bytes == counts->sent_bytes && received == counts->received &&
        received_bytes == counts->received_bytes)
        return NULL;
    return BEL_ERR(BEL_INTERNAL, "predicted frames %lld and %lld, bytes %lld and %lld",
                   (long long)sent, (long long)received, (long long)sent_bytes,
                   (long long)received_bytes);
}

static bel_status *measure(char **arguments)
{
    figures f = {.role_count = 1 + job.shard_count};
    bel_train_spec spec;
    bel_estimator *estimator;
    bel_trainable trainable;
    hollow_counts counts;
    bel_task *task;
    char *secret;
    BEL_TRY(bel_secret_create(&secret));
    setenv("BELFRY_SECRET", secret, 1);
    bel_free(secret);
    f.roles = bel_xcalloc((size_t)f.role_count, sizeof *f.roles);
    bel_linux_raise_file_limit();
    BEL_TRY(start_roles(arguments, &f));
    take_task(BEL_ROLE_WORKER, 0);
    BEL_TRY(bel_task_from_environment(true, &task));
    BEL_TRY(make_estimator(&spec, &estimator));
    BEL_TRY(bel_trainable_init(&trainable, estimator, &spec));
    f.bare_mb = memory_mb(getpid(), "status", "VmRSS");
    BEL_TRY(hollow_play(&job, task, &trainable, look, &f, &counts));
    BEL_TRY(await_roles(&f));
    print_figures(&f, &counts);
    if (job.plan != NULL) BEL_TRY(print_planned(&f, &trainable));
    BEL_TRY(check_counts(&counts, &trainable));
    bel_trainable_deinit(&trainable);
    bel_estimator_destroy(estimator);
    bel_task_destroy(task);
    bel_free(f.roles);
    return NULL;
}

// --- Arguments -----------------------------------------------------------------------------------

static bool read_count(const char *text, int64_t most, int64_t *out_count)
{
    char *end;
    double count = strtod(text, &end); // 2e6
    *out_count = (int64_t)count;
    return end != text && *end == '\0' && count >= 1 && count <= (double)most &&
           (double)*out_count == count;
}

static bool read_option(const char *name, const char *value)
{
    const int64_t most = (int64_t)1 << 40;
    if (value == NULL) return false;
    if (strcmp(name, "--parameters") == 0) return read_count(value, most, &job.parameters);
    if (strcmp(name, "--drops") == 0) return read_count(value, most, &job.drops);
    if (strcmp(name, "--steps") == 0) return read_count(value, most, &job.steps);
    if (strcmp(name, "--fan_in") == 0)
        return read_count(value, BEL_FAN_IN_MOST, &job.fan_in) && job.fan_in > 1;
    if (strcmp(name, "--plan") == 0) {
        job.plan = bel_xstrdup(value);
        return true;
    }
    if (strcmp(name, "--folder") == 0) { // this process was started by another one
        job.folder = bel_xstrdup(value);
        return true;
    }
    if (strcmp(name, "--exchange_precision") == 0) {
        static const char *const names[] = {"f32", "bf16", "int8"};
        for (int i = 0; i < 3; i++) {
            job.precision = (bel_exchange_precision)i;
            if (strcmp(value, names[i]) == 0) return true;
        }
        return false;
    }
    job.grpc = strcmp(value, "grpc") == 0;
    return strcmp(name, "--lane") == 0 && (job.grpc || strcmp(value, "shm") == 0);
}

static bool read_arguments(int argc, char **argv)
{
    int64_t workers, shards;
    const int64_t most = 100000;
    bool good = argc >= 4 && read_count(argv[1], most, &workers) &&
                read_count(argv[2], MOST_SHARDS, &shards) &&
                read_count(argv[3], most, &job.variable_count);
    if (!good) return false;
    job.worker_count = (int)workers;
    job.shard_count = (int)shards;
    for (int i = 4; i < argc; i += 2)
        if (!read_option(argv[i], argv[i + 1])) return false;
    if (job.parameters == 0) job.parameters = UNIT * job.variable_count;
    bool apart = job.steps / (job.drops + 1) > 2; // a drop is over before the next one
    if (job.drops > 0 && (!job.grpc || !apart)) return false;
    return job.parameters >= job.variable_count;
}

int main(int argc, char **argv)
{
    enum { MOST_ARGUMENTS = 24 };
    if (argc + 2 >= MOST_ARGUMENTS || !read_arguments(argc, argv)) {
        fprintf(stderr, "usage: bench_hollow WORKERS SHARDS VARIABLES [--parameters N] [--lane "
                        "shm|grpc] [--exchange_precision f32|bf16|int8] [--fan_in N] [--drops N, "
                        "only with --lane grpc and 3 steps each] [--steps N] [--plan FOLDER]\n");
        return 2;
    }
    if (job.folder != NULL) return play_role();
    char folder[] = "/tmp/belfry-hollow-XXXXXX", flag[] = "--folder";
    char *arguments[MOST_ARGUMENTS + 2] = {0};
    if (mkdtemp(folder) == NULL) return bench_end(BEL_ERR(BEL_INTERNAL, "cannot make a folder"));
    job.folder = folder;
    memcpy(arguments, argv, (size_t)argc * sizeof *argv);
    arguments[argc] = flag;
    arguments[argc + 1] = folder;
    int code = bench_end(measure(arguments));
    if (code != 0) show_log();
    bel_status_ignore(bel_dir_remove(folder)); // a leftover in /tmp is harmless
    fflush(stdout);
    _exit(code); // after an error threads still run; the other processes end with this one
}
