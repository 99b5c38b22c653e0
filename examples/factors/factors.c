/// Matrix factorization: images times pixels, of handwritten digits. Each image and each pixel has
/// a row of RANK numbers, in a separate table, and a pixel's brightness is the scalar product of
/// the two.
///
/// ```
/// image id ── embedding "images" [n, 1, RANK] ─┐
///                                              ├─ product ── sum ── how bright it is, [n, 1]
/// pixel id ── embedding "pixels" [n, 1, RANK] ─┘
/// ```
///
/// Two step functions with the same loss each update one of the tables: ALTERNATE steps of one,
/// ALTERNATE of the other. Ratings of films by users are learned the same way, even if no process
/// can store all users: rows are on the parameter servers.
///
/// usage: factors TRAIN.csv [STEPS] [--model_dir FOLDER] [flags of a run]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <belfry/belfry.h>

enum { PIXELS = 64, MOST_IMAGES = 10000, RANK = 8, BATCH = 256, ALTERNATE = 10 };

// One record for each pixel of each image.
typedef struct records {
    int64_t count;
    int64_t *images, *pixels;
    float *values; // from 0 to 1
} records;

// --- Step functions ------------------------------------------------------------------------------

static bel_value *rows_of(bel_model_context *context, const char *table, const char *ids)
{
    const bel_initializer start = {.kind = BEL_INIT_UNIFORM, .value = 0.5};
    return bel_embedding(bel_context_graph(context), table, bel_context_feature(context, ids), RANK,
                         start);
}

static bel_value *brightness(bel_model_context *context)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *product =
        bel_mul(g, rows_of(context, "images", "image"), rows_of(context, "pixels", "pixel"));
    return bel_reduce_sum(g, product, (const int64_t[]){2}, 1, false);
}

static bel_status *step_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *error = bel_sub(g, brightness(context), bel_context_feature(context, "value"));
    bel_loss_set(spec, bel_mean(g, bel_mul(g, error, error)));
    const bel_optimizer adam = {
        .size = sizeof adam, .kind = BEL_OPTIMIZER_ADAM, .learning_rate = 0.05};
    bel_optimizer_use(spec, NULL, &adam);
    return NULL;
}

enum { IMAGES_STEP, PIXELS_STEP };
static const bel_step_function functions[] = {
    {"images", step_fn, "images"},
    {"pixels", step_fn, "pixels"},
};

// The loop trains; this serves programs that read the checkpoints.
static bel_status *model_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_predictions_set(spec, brightness(context));
    return NULL;
}

// The current step determines the next one, so the loop needs no state.
static bel_status *loop(void *user, bel_replicator *replicator)
{
    enum { SAY_EVERY = 200 };
    int64_t steps = *(const int64_t *)user, step;
    while ((step = bel_replicator_step(replicator)) < steps) {
        int function = step / ALTERNATE % 2 == 0 ? IMAGES_STEP : PIXELS_STEP;
        bool says = (step + 1) % SAY_EVERY == 0 || step + 1 == steps;
        const bel_step_result *result;
        BEL_TRY(bel_replicator_run(replicator, function, says ? &result : NULL));
        if (!says) continue;
        printf("step %lld: off by %.3f of full brightness\n", (long long)result->step,
               sqrt(result->loss));
        fflush(stdout);
    }
    return NULL;
}

// --- Input ---------------------------------------------------------------------------------------

static bel_status *input_fn(void *user, const bel_estimator *estimator, bel_mode mode,
                            bel_dataset **out_dataset)
{
    (void)estimator;
    const records *r = user;
    const bel_memory_field fields[] = {
        {"image", {BEL_DTYPE_I64, BEL_SHAPE(r->count, 1), r->images}},
        {"pixel", {BEL_DTYPE_I64, BEL_SHAPE(r->count, 1), r->pixels}},
        {"value", {BEL_DTYPE_F32, BEL_SHAPE(r->count, 1), r->values}},
    };
    bel_dataset *data = bel_dataset_from_memory(fields, 3);
    if (mode == BEL_MODE_TRAIN) {
        bel_dataset_shuffle(data, 0, 1);
        bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
    }
    bel_dataset_batch(data, BATCH);
    *out_dataset = data;
    return NULL;
}

// Reads a header, then for each image a line of PIXELS numbers from 0 to 16, followed by its digit.
static bel_status *read_images(const char *path, records *out)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) return BEL_ERR(BEL_NOT_FOUND, "%s cannot be read", path);
    size_t most = (size_t)MOST_IMAGES * PIXELS;
    *out = (records){.images = calloc(most, sizeof(int64_t)),
                     .pixels = calloc(most, sizeof(int64_t)),
                     .values = calloc(most, sizeof(float))};
    char line[4096];
    bool good = fgets(line, sizeof line, file) != NULL; // the header
    for (int64_t image = 0; good && image < MOST_IMAGES && fgets(line, sizeof line, file);
         image++) {
        char *at = line;
        for (int pixel = 0; pixel < PIXELS && good; pixel++, out->count++) {
            char *end;
            out->images[out->count] = image;
            out->pixels[out->count] = pixel;
            out->values[out->count] = strtof(at, &end) / 16;
            good = end != at && *end == ',';
            at = end + 1;
        }
    }
    fclose(file);
    if (good && out->count > 0) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected a header, then lines of %d pixels and a digit",
                   path, PIXELS);
}

// Parses a number of steps; false if it is malformed.
static bool read_count(const char *text, int64_t *out)
{
    char *rest;
    *out = strtoll(text, &rest, 10);
    return rest != text && *rest == '\0' && *out > 0;
}

int main(int count, char **arguments)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.save_checkpoints_steps = 150;
    bel_status *status = bel_run_config_flags(&config, &count, arguments);
    if (status == NULL) status = bel_refuse_flags(count, arguments);
    if (status != NULL) return bel_status_report(status);
    int64_t steps = 2000;
    if (count < 2 || count > 3 || (count == 3 && !read_count(arguments[2], &steps))) {
        fprintf(stderr, "usage: factors TRAIN.csv [STEPS] [--model_dir FOLDER] [flags]\n");
        return 2;
    }
    records r;
    status = read_images(arguments[1], &r);
    if (status != NULL) return bel_status_report(status);
    bel_estimator *estimator;
    status = bel_estimator_create(model_fn, &config, NULL, 0, &estimator);
    if (status != NULL) return bel_status_report(status);
    const bel_loop own = {.size = sizeof own,
                          .functions = functions,
                          .function_count = 2,
                          .run = loop,
                          .user = &steps};
    const bel_train_spec train = {
        .size = sizeof train, .input_fn = input_fn, .input_user = &r, .loop = &own};
    bel_result result = {.size = sizeof result};
    int code = bel_run_job(estimator, &train, NULL, 0, &result);
    if (result.digest[0] != '\0') printf("digest %s\n", result.digest);
    bel_estimator_destroy(estimator);
    free(r.images);
    free(r.pixels);
    free(r.values);
    return code;
}
