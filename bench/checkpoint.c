// Checkpoints of MEGABYTES (796) in 24 tensors, with a warm cache. The figures are saving over
// writing and syncing the same bytes, restoring over reading them, and the stall that a checkpoint
// causes in a training of 10 M parameters with Adam, over writing and syncing its 120 MB.
// Interleaved, medians of ROUNDS with quartiles.
// usage: bench_checkpoint [ROUNDS [MEGABYTES [FOLDER]]]
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "figures.h"
#include "mlp.h"

enum { TENSORS = 24, MOST_ROUNDS = 50 };

static double seconds_since(int64_t begun)
{
    return (double)(bel_clock_ns() - begun) * 1e-9;
}

// --- The baselines -------------------------------------------------------------------------------

static bel_status *write_plainly(const char *path, const char *data, size_t bytes,
                                 double *out_seconds)
{
    int64_t begun = bel_clock_ns();
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    bool good = file >= 0;
    for (size_t at = 0; good && at < bytes;) {
        size_t part = bytes - at < (4U << 20) ? bytes - at : 4U << 20;
        ssize_t wrote = write(file, data + at, part);
        good = wrote > 0;
        at += good ? (size_t)wrote : 0;
    }
    good = good && fsync(file) == 0;
    if (file >= 0) good = close(file) == 0 && good;
    *out_seconds = seconds_since(begun);
    return good ? NULL : BEL_ERR(BEL_INTERNAL, "cannot write %s", path);
}

static bel_status *read_plainly(const char *path, char *data, size_t bytes, double *out_seconds)
{
    int64_t begun = bel_clock_ns();
    int file = open(path, O_RDONLY);
    size_t at = 0;
    for (ssize_t got = 1; file >= 0 && got > 0 && at < bytes; at += (size_t)(got > 0 ? got : 0))
        got = read(file, data + at, bytes - at < (4U << 20) ? bytes - at : 4U << 20);
    if (file >= 0) close(file);
    *out_seconds = seconds_since(begun);
    return at == bytes ? NULL : BEL_ERR(BEL_INTERNAL, "cannot read %s", path);
}

// --- Belfry --------------------------------------------------------------------------------------

typedef struct work {
    char *folder;
    char *plain;
    float *data, *back;
    int64_t elements; // per tensor
    size_t bytes;     // in all
} work;

static bel_status *save(const work *w, double *out_seconds)
{
    static const char *const settings[] = {"bench"};
    bel_ckpt_piece pieces[TENSORS];
    char names[TENSORS][24];
    for (int i = 0; i < TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "tensor%02d", i);
        pieces[i] = (bel_ckpt_piece){.name = names[i],
                                     .dtype = BEL_DTYPE_F32,
                                     .shape = BEL_SHAPE(w->elements),
                                     .count = w->elements,
                                     .data = w->data + i * w->elements};
    }
    const bel_input_segment segment = {.replica_count = 1};
    const bel_ckpt_info info = {.step = 1,
                                .segments = &segment,
                                .segment_count = 1,
                                .setting_names = settings,
                                .setting_values = settings,
                                .setting_count = 1};
    bel_ckpt_shard *shard = NULL;
    bel_hash128 digest;
    char *folder;
    int64_t begun = bel_clock_ns();
    BEL_TRY(bel_ckpt_begin(w->folder, 1, 0, 0, &folder));
    bel_status *status = bel_ckpt_write_shard(folder, 0, 1, pieces, TENSORS, &shard);
    if (status == NULL) status = bel_ckpt_commit(w->folder, folder, &info, &shard, 1, &digest);
    *out_seconds = seconds_since(begun);
    bel_ckpt_shard_destroy(shard);
    bel_free(folder);
    return status;
}

static bel_status *restore(const work *w, double *out_seconds)
{
    bel_ckpt_reader *reader;
    int64_t begun = bel_clock_ns();
    BEL_TRY(bel_ckpt_open_latest(w->folder, &reader));
    bel_status *status = NULL;
    const bel_shape shape = BEL_SHAPE(w->elements);
    for (int i = 0; i < TENSORS && status == NULL; i++) {
        char name[24];
        snprintf(name, sizeof name, "tensor%02d", i);
        status = bel_ckpt_read(reader, name, BEL_DTYPE_F32, &shape, 0, w->elements,
                               w->back + i * w->elements);
    }
    *out_seconds = seconds_since(begun);
    bel_ckpt_close(reader);
    bool same = memcmp(w->data, w->back, w->bytes) == 0;
    return status != NULL || same ? status : BEL_ERR(BEL_DATA_LOSS, "other bytes came back");
}

static bel_status *measure_files(const work *w, int rounds)
{
    double saved[MOST_ROUNDS], wrote[MOST_ROUNDS], restored[MOST_ROUNDS], read_[MOST_ROUNDS];
    for (int r = -1; r < rounds; r++) { // one warm-up round, overwritten
        int at = r < 0 ? 0 : r;
        BEL_TRY(write_plainly(w->plain, (const char *)w->data, w->bytes, &wrote[at]));
        BEL_TRY(save(w, &saved[at]));
        BEL_TRY(read_plainly(w->plain, (char *)w->back, w->bytes, &read_[at]));
        BEL_TRY(restore(w, &restored[at]));
    }
    bench_spread saving = bench_ratio_of(saved, wrote, rounds);
    bench_spread restoring = bench_ratio_of(restored, read_, rounds);
    printf("{\"megabytes\": %.0f, \"save\": %.3f, \"write_and_sync\": %.3f, "
           "\"save_over_write\": %.2f, \"save_quartiles\": [%.2f, %.2f], \"restore\": %.3f, "
           "\"read\": %.3f, \"restore_over_read\": %.2f, \"restore_quartiles\": [%.2f, %.2f]}\n",
           (double)w->bytes * 1e-6, bench_median(saved, rounds), bench_median(wrote, rounds),
           saving.median, saving.low, saving.high, bench_median(restored, rounds),
           bench_median(read_, rounds), restoring.median, restoring.low, restoring.high);
    bench_figure("checkpoint.save", &saving);
    bench_figure("checkpoint.restore", &restoring);
    return NULL;
}

// --- Stall of a training -------------------------------------------------------------------------

enum { STEPS = 300, WIDTH = 2230, PARAMETERS = 2 * WIDTH * WIDTH };

static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    const bel_shape shape = BEL_SHAPE(WIDTH, WIDTH);
    bel_value *x = bel_mean(g, bel_context_only_feature(context));
    const bel_initializer small = {.kind = BEL_INIT_UNIFORM, .value = 0.01};
    bel_value *a = bel_variable(g, "a", &shape, small, BEL_VARIABLE_TRAINABLE);
    bel_value *b = bel_variable(g, "b", &shape, small, BEL_VARIABLE_TRAINABLE);
    bel_loss_set(spec, bel_mul(g, bel_mean(g, bel_mul(g, a, b)), x));
    const bel_optimizer adam = {
        .size = sizeof adam, .kind = BEL_OPTIMIZER_ADAM, .learning_rate = 1e-4};
    bel_optimizer_use(spec, NULL, &adam);
    return NULL;
}

// Trains with a first and a last checkpoint, and `saves` checkpoints between them.
static bel_status *train(const char *folder, int saves, double *out_seconds)
{
    static int64_t batch = 1;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.report = false;
    config.save_checkpoints_steps = STEPS / (saves + 1);
    config.keep_checkpoint_max = 2;
    bel_estimator *estimator;
    bel_result result = {.size = sizeof result};
    BEL_TRY(bel_estimator_create(model, &config, NULL, 0, &estimator));
    const bel_train_spec spec = {
        .size = sizeof spec, .input_fn = bench_input, .input_user = &batch, .max_steps = STEPS};
    bel_status *status = bel_train(estimator, &spec, &result);
    bel_estimator_destroy(estimator);
    BEL_TRY(bel_dir_remove(folder));
    *out_seconds = result.train_seconds;
    return status;
}

static bel_status *measure_stall(const work *w, int rounds)
{
    enum { SAVES = 1 };
    size_t bytes = 3 * (size_t)PARAMETERS * sizeof(float);
    double lost[MOST_ROUNDS], wrote[MOST_ROUNDS];
    char *folder = bel_strf("%s/run", w->folder);
    if (bytes > w->bytes) bytes = w->bytes;
    for (int r = 0; r < rounds; r++) {
        double without, with;
        BEL_TRY(train(folder, 0, &without));
        BEL_TRY(train(folder, SAVES, &with));
        BEL_TRY(write_plainly(w->plain, (const char *)w->data, bytes, &wrote[r]));
        lost[r] = (with - without) / SAVES;
    }
    bench_spread ratio = bench_ratio_of(lost, wrote, rounds);
    printf("{\"parameters\": %d, \"megabytes\": %.0f, \"stall\": %.4f, \"write_and_sync\": %.4f, "
           "\"stall_over_write\": %.2f, \"stall_quartiles\": [%.2f, %.2f]}\n",
           PARAMETERS, (double)bytes * 1e-6, bench_median(lost, rounds),
           bench_median(wrote, rounds), ratio.median, ratio.low, ratio.high);
    bench_figure("checkpoint.stall", &ratio);
    bel_free(folder);
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 7;
    double megabytes = argc > 2 ? strtod(argv[2], NULL) : 796;
    const char *where = argc > 3 ? argv[3] : "/tmp";
    char *folder = bel_strf("%s/belfry-bench-XXXXXX", where);
    work w = {.folder = mkdtemp(folder), .elements = (int64_t)(megabytes * 1e6 / 4 / TENSORS)};
    if (rounds < 1 || rounds > MOST_ROUNDS || w.folder == NULL || w.elements < 1) {
        fprintf(stderr, "usage: bench_checkpoint [ROUNDS [MEGABYTES [FOLDER]]]\n");
        return 2;
    }
    w.plain = bel_strf("%s/plain", w.folder);
    w.bytes = (size_t)w.elements * TENSORS * sizeof(float);
    w.data = bel_xmalloc(w.bytes);
    w.back = bel_xmalloc(w.bytes);
    for (int64_t i = 0; i < w.elements * TENSORS; i++)
        w.data[i] = (float)(i % 1000) * 0.001F;
    memset(w.back, 0, w.bytes);
    bench_fill();
    bel_status *status = measure_files(&w, rounds);
    if (status == NULL) status = measure_stall(&w, rounds);
    bel_status_ignore(bel_dir_remove(w.folder)); // in /tmp
    bel_free(w.data);
    bel_free(w.back);
    bel_free(w.plain);
    bel_free(folder);
    return bench_end(status);
}
