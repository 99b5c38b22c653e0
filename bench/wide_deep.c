// A wide and deep model: 26 fields of ids in tables of 16 floats and of 1, 13 numbers, layers 256,
// 128, 1; batches of 512. One worker with one thread is compared with PyTorch with sparse
// embeddings. Two workers, as threads of one process and as processes with a parameter server, are
// compared with two processes of DDP (wide_deep_torch.py). In turns, medians and quartiles. Without
// PyTorch only Belfry's figures.
// usage: bench_wide_deep [ROUNDS [SCRIPT]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "belfry/estimator.h"
#include "figures.h"
#include "mlp.h"

enum { FIELDS = 26, NUMBERS = 13, EXAMPLES = 512, BATCHES = 32, STEPS = 150, MAX_ROUNDS = 15 };
enum { RECORDS = EXAMPLES * BATCHES };

static int64_t ids[RECORDS][FIELDS];
static float numbers[RECORDS][NUMBERS];
static float labels[RECORDS][1];

static void make_records(int64_t rows)
{
    bel_rng_key key = bel_rng_key_make(1, "bench", 0);
    uint32_t words[4];
    for (uint64_t i = 0; i < RECORDS; i++) {
        for (uint64_t f = 0; f < FIELDS; f++) {
            bel_rng_block(key, i, f, words);
            ids[i][f] = (int64_t)(words[0] % (uint64_t)rows) + (int64_t)f * rows;
            if (f < NUMBERS) numbers[i][f] = bel_rng_unit(words[1]) - 0.5f;
        }
        labels[i][0] = (float)(words[2] & 1);
    }
}

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)user, (void)mode, (void)estimator;
    const bel_memory_field fields[] = {
        {"ids", {.dtype = BEL_DTYPE_I64, .shape = BEL_SHAPE(RECORDS, FIELDS), .data = ids}},
        {"x", {.dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(RECORDS, NUMBERS), .data = numbers}},
        {"clicked", {.dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(RECORDS, 1), .data = labels}}};
    bel_dataset *data = bel_dataset_from_memory(fields, 3);
    bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
    bel_dataset_batch(data, EXAMPLES);
    *out_dataset = data;
    return NULL;
}

static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_context_feature(context, "x"), *i = bel_context_feature(context, "ids");
    bel_initializer normal = {.kind = BEL_INIT_NORMAL, .value = 0.01},
                    zeros = {.kind = BEL_INIT_ZEROS};
    bel_shape flat = BEL_SHAPE(BEL_DIM_BATCH, FIELDS * 16),
              single = BEL_SHAPE(BEL_DIM_BATCH, FIELDS);
    bel_value *deep = bel_reshape(g, bel_embedding(g, "deep", i, 16, normal), &flat);
    bel_value *wide = bel_reshape(g, bel_embedding(g, "wide", i, 1, zeros), &single);
    bel_value *h =
        bel_relu(g, bel_add(g, bel_dense(g, deep, 256, "rows"), bel_dense(g, x, 256, "x")));
    h = bel_relu(g, bel_dense(g, h, 128, "hidden"));
    int64_t axis = 1;
    bel_value *logits = bel_add(g, bel_dense(g, h, 1, "deep_logit"), bel_dense(g, x, 1, "x_logit"));
    logits = bel_add(g, logits, bel_reduce_sum(g, wide, &axis, 1, true));
    bel_value *losses =
        bel_sigmoid_cross_entropy(g, logits, bel_context_feature(context, "clicked"));
    bel_loss_set(spec, bel_mean(g, losses));
    bool plain = strcmp(bel_context_param(context, "optimizer", "sgd"), "sgd") == 0;
    const bel_optimizer own = {.size = sizeof own,
                               .kind = plain ? BEL_OPTIMIZER_SGD : BEL_OPTIMIZER_ADAGRAD,
                               .learning_rate = 0.01};
    bel_optimizer_use(spec, NULL, &own);
    return NULL;
}

static double train(const char *folder, const char *optimizer, int workers)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.num_workers = workers;
    config.num_threads = 1;
    config.save_checkpoints_secs = 0;
    config.save_summary_steps = 0;
    config.report = false;
    const bel_param param = {"optimizer", optimizer};
    bel_estimator *estimator;
    bel_train_spec spec = {.size = sizeof spec, .input_fn = input, .max_steps = STEPS};
    bel_result result = {.size = sizeof result};
    bel_status *status = bel_estimator_create(model, &config, &param, 1, &estimator);
    if (status == NULL) status = bel_train(estimator, &spec, &result);
    if (status != NULL) {
        fprintf(stderr, "%s\n", bel_status_message(status));
        exit(1);
    }
    bel_estimator_destroy(estimator);
    return result.examples_per_second;
}

// Turns this process into a member of a cluster with one parameter server.
static void take_role(const char *folder, const char *role, int index, int workers)
{
    char text[512], name[32];
    snprintf(name, sizeof name, "%s-%d", role, index);
    if (strcmp(role, "master") == 0) snprintf(name, sizeof name, "m");
    snprintf(text, sizeof text,
             "{\"role\":\"%s\",\"index\":%d,\"incarnation\":0,\"master\":\"unix:%s/m\","
             "\"listen\":\"unix:%s/%s\",\"worker_count\":%d,\"parameter_server_count\":1}",
             role, index, folder, folder, name, workers);
    setenv("BELFRY_TASK", text, 1);
}

// `out` receives the rate. This process never has a member's threads, which a fork would not copy.
static void start_member(const char *folder, const char *role, int index, const char *optimizer,
                         int workers, int out)
{
    if (fork() != 0) return;
    take_role(folder, role, index, workers);
    double rate = train(folder, optimizer, workers);
    exit(out >= 0 && write(out, &rate, sizeof rate) != sizeof rate);
}

static double train_processes(const char *folder, const char *optimizer, int workers)
{
    int pipe_ends[2];
    double rate = 0;
    if (pipe(pipe_ends) != 0) abort();
    for (int w = 0; w < workers; w++)
        start_member(folder, "worker", w, optimizer, workers, -1);
    start_member(folder, "ps", 0, optimizer, workers, -1);
    start_member(folder, "master", 0, optimizer, workers, pipe_ends[1]);
    close(pipe_ends[1]);
    if (read(pipe_ends[0], &rate, sizeof rate) != sizeof rate) exit(1);
    close(pipe_ends[0]);
    while (wait(NULL) > 0) {
    }
    return rate;
}

static double ours(const char *optimizer, int workers, bool processes)
{
    char folder[] = "/tmp/belfry-bench-XXXXXX";
    if (mkdtemp(folder) == NULL) abort();
    double rate =
        processes ? train_processes(folder, optimizer, workers) : train(folder, optimizer, workers);
    bel_status_ignore(bel_dir_remove(folder)); // a leftover in /tmp is harmless
    return rate;
}

// Measures the peer; 0: no PyTorch.
static double theirs(const char *script, const char *optimizer, int64_t rows, int processes)
{
    char command[512];
    double rate = 0;
    snprintf(command, sizeof command, "bench/torch 1 %s %s %lld %d 2>/dev/null", script, optimizer,
             (long long)rows, processes);
    FILE *pipe = popen(command, "r");
    if (pipe == NULL) return 0;
    if (fscanf(pipe, "%lf", &rate) != 1) rate = 0;
    pclose(pipe);
    return rate;
}

static void compare(const char *script, const char *optimizer, int64_t rows, int workers,
                    int rounds)
{
    double own[MAX_ROUNDS], apart[MAX_ROUNDS], peer[MAX_ROUNDS];
    make_records(rows);
    for (int i = 0; i < rounds; i++) {
        own[i] = ours(optimizer, workers, false);
        apart[i] = workers > 1 ? ours(optimizer, workers, true) : own[i];
        peer[i] = theirs(script, optimizer, rows, workers);
    }
    bench_spread ratio = bench_ratio_of(own, peer, rounds);
    bench_spread processes = bench_ratio_of(apart, peer, rounds);
    double a = bench_median(own, rounds), b = bench_median(peer, rounds),
           c = bench_median(apart, rounds);
    printf("26 x %lld rows, %s, %d worker%s: %.0f examples/s", (long long)rows, optimizer, workers,
           workers == 1 ? "" : "s", a);
    if (workers > 1) printf(", as processes %.0f", c);
    if (b > 0) {
        printf("; PyTorch %.0f; ratio %.2f [%.2f, %.2f]", b, ratio.median, ratio.low, ratio.high);
        bench_figuref(&ratio, "wide_deep.%s.%lldk.%d", optimizer, (long long)rows / 1000, workers);
    }
    if (b > 0 && workers > 1) {
        printf(", as processes %.2f [%.2f, %.2f]", processes.median, processes.low, processes.high);
        bench_figuref(&processes, "wide_deep.%s.%lldk.%d.processes", optimizer,
                      (long long)rows / 1000, workers);
    }
    printf("\n");
    fflush(stdout);
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 5;
    if (system("bench/torch 1 --choose") != 0) printf("no peer to compare with\n");
    const char *script = count > 2 ? arguments[2] : "bench/wide_deep_torch.py";
    if (rounds < 1 || rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
    bel_log_configure(BEL_LOG_WARN, BEL_LOG_TEXT);
    for (int64_t rows = 100000; rows <= 1000000; rows *= 10) {
        for (int workers = 1; workers <= 2; workers++) {
            compare(script, "sgd", rows, workers, rounds);
            compare(script, "adagrad", rows, workers, rounds);
        }
    }
    return 0;
}
