/// Generative adversarial network on handwritten digits, 8 × 8 pixels (Goodfellow et al. 2014): a
/// custom loop with two step functions, which update separate variables.
///
/// ```
/// noise [n, 16] ── dense 64 ── dense 64 ── sigmoid ── image ─┐
///                                                            ├─ dense 64 ── dense 1 ── real or not
/// digits-train.csv ── pixels / 16 ───────────────────────────┘
/// ```
///
/// The loop alternates two steps of the discriminator and one of the generator. Every 300 steps,
/// and at the end, it writes a picture of samples: MODEL_DIR/samples-<step>.pgm.
///
/// usage: gan TRAIN.csv [STEPS] [--model_dir FOLDER] [flags of a run, such as
///        --num_workers 4 --mode async]
#include <stdio.h>
#include <stdlib.h>

#include <belfry/belfry.h>

enum {
    PIXELS = 64,
    SIDE = 8,
    NOISE = 16,
    WIDTH = 64,
    SAMPLES = 16,
    BATCH = 32,
    PICTURE_EVERY = 300
};

static const bel_optimizer adam = {
    .size = sizeof adam, .kind = BEL_OPTIMIZER_ADAM, .learning_rate = 0.002, .beta1 = 0.5};

// Makes images [n, PIXELS] from noise in the shape of `like`, [n, NOISE].
static bel_value *generate(bel_graph *g, bel_value *like)
{
    bel_value *h = bel_random_normal(g, like, 0, 1);
    h = bel_leaky_relu(g, bel_dense(g, h, WIDTH, "generator/first"), 0.2);
    h = bel_leaky_relu(g, bel_dense(g, h, WIDTH, "generator/second"), 0.2);
    return bel_sigmoid(g, bel_dense(g, h, PIXELS, "generator/image"));
}

// Returns logits, [n, 1], of images being real.
static bel_value *judge(bel_graph *g, bel_value *images)
{
    bel_value *h = bel_leaky_relu(g, bel_dense(g, images, WIDTH, "discriminator/first"), 0.2);
    return bel_dense(g, h, 1, "discriminator/real");
}

// Returns the mean loss of logits whose target is `real`.
static bel_value *loss_of(bel_graph *g, bel_value *logits, double real)
{
    bel_value *zeros = bel_mul(g, logits, bel_scalar(g, BEL_DTYPE_F32, 0));
    bel_value *labels = bel_add(g, zeros, bel_scalar(g, BEL_DTYPE_F32, real));
    return bel_mean(g, bel_sigmoid_cross_entropy(g, logits, labels));
}

// Makes rows of NOISE columns, one for each image in the batch.
static bel_value *rows(bel_model_context *context)
{
    return bel_slice(bel_context_graph(context), bel_context_only_feature(context),
                     (const int64_t[]){1}, (const int64_t[]){0}, (const int64_t[]){NOISE}, NULL, 1);
}

static bel_status *discriminator_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *made = bel_stop_gradient(g, generate(g, rows(context)));
    // 0.9 instead of 1 prevents overconfidence (one-sided label smoothing).
    bel_value *real = loss_of(g, judge(g, bel_context_only_feature(context)), 0.9);
    bel_loss_set(spec, bel_add(g, real, loss_of(g, judge(g, made), 0)));
    bel_optimizer_use(spec, NULL, &adam);
    return NULL;
}

static bel_status *generator_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_loss_set(spec, loss_of(g, judge(g, generate(g, rows(context))), 1));
    bel_optimizer_use(spec, NULL, &adam);
    const bel_shape some = BEL_SHAPE(SAMPLES, NOISE);
    bel_value *samples = generate(g, bel_expand(g, bel_scalar(g, BEL_DTYPE_F32, 0), &some));
    bel_return_add(context, spec, "samples", samples, BEL_RETURN_REPLICAS);
    return NULL;
}

enum { DISCRIMINATOR, GENERATOR };
static const bel_step_function functions[] = {
    {"discriminator", discriminator_fn, "discriminator/*"},
    {"generator", generator_fn, "generator/*"},
};

// The loop trains; this serves programs that read the checkpoints: predictions are samples.
static bel_status *model_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_predictions_set(spec, generate(bel_context_graph(context), rows(context)));
    return NULL;
}

// Makes a dataset of real images, which repeats.
static bel_status *input_fn(void *user, const bel_estimator *estimator, bel_mode mode,
                            bel_dataset **out_dataset)
{
    (void)estimator;
    const char *const *path = user;
    const bel_csv_options csv = {.size = sizeof csv,
                                 .paths = path,
                                 .path_count = 1,
                                 .label_column = "digit",
                                 .class_count = 10,
                                 .scale = 1.0 / 16};
    bel_dataset *data = bel_dataset_from_csv(&csv);
    if (mode == BEL_MODE_TRAIN) {
        bel_dataset_shuffle(data, 0, 1);
        bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
    }
    bel_dataset_batch(data, BATCH);
    *out_dataset = data;
    return NULL;
}

// --- The loop ------------------------------------------------------------------------------------

// State of the loop; the step number determines the next step function.
typedef struct memory {
    double discriminator_loss, generator_loss; // decaying means
} memory;

typedef struct course {
    int64_t steps;
    const bel_estimator *estimator;
    memory memory;
} course;

// Writes SAMPLES images side by side, white on black, as a gray map for any viewer.
static bel_status *write_picture(const course *c, int64_t step, const double *pixels)
{
    enum { ACROSS = 8, DOWN = SAMPLES / ACROSS };
    char path[4096];
    snprintf(path, sizeof path, "%s/samples-%lld.pgm",
             bel_estimator_config(c->estimator)->model_dir, (long long)step);
    FILE *file = fopen(path, "w");
    if (file == NULL) return BEL_ERR(BEL_NOT_FOUND, "%s cannot be written", path);
    fprintf(file, "P2 %d %d 255\n", ACROSS * SIDE, DOWN * SIDE);
    for (int y = 0; y < DOWN * SIDE; y++)
        for (int x = 0; x < ACROSS * SIDE; x++) {
            int image = y / SIDE * ACROSS + x / SIDE, pixel = y % SIDE * SIDE + x % SIDE;
            fprintf(file, "%d%c", (int)(255 * pixels[image * PIXELS + pixel] + 0.5),
                    x == ACROSS * SIDE - 1 ? '\n' : ' ');
        }
    if (fclose(file) != 0) return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "%s cannot be written", path);
    return NULL;
}

static void take_loss(double *mean, double loss)
{
    *mean = *mean == 0 ? loss : 0.98 * *mean + 0.02 * loss;
}

static bel_status *loop(void *user, bel_replicator *replicator)
{
    course *c = user;
    int64_t step;
    while ((step = bel_replicator_step(replicator)) < c->steps) {
        const bel_step_result *result;
        if (step % 3 < 2) {
            BEL_TRY(bel_replicator_run(replicator, DISCRIMINATOR, &result));
            take_loss(&c->memory.discriminator_loss, result->loss);
            continue;
        }
        BEL_TRY(bel_replicator_run(replicator, GENERATOR, &result));
        take_loss(&c->memory.generator_loss, result->loss);
        if (result->step % PICTURE_EVERY != 0 && result->step < c->steps) continue;
        printf("step %lld: discriminator %.3f, generator %.3f\n", (long long)result->step,
               c->memory.discriminator_loss, c->memory.generator_loss);
        fflush(stdout);
        BEL_TRY(write_picture(c, result->step, bel_step_result_find(result, "samples", NULL)));
    }
    return NULL;
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
    config.num_gpus = 2;
    config.save_checkpoints_steps = 150;
    bel_status *status = bel_run_config_flags(&config, &count, arguments);
    if (status == NULL) status = bel_refuse_flags(count, arguments);
    if (status != NULL) return bel_status_report(status);
    int64_t steps = 3000;
    if (count < 2 || count > 3 || (count == 3 && !read_count(arguments[2], &steps))) {
        fprintf(stderr, "usage: gan TRAIN.csv [STEPS] [--model_dir FOLDER] [flags]\n");
        return 2;
    }
    bel_estimator *estimator;
    status = bel_estimator_create(model_fn, &config, NULL, 0, &estimator);
    if (status != NULL) return bel_status_report(status);
    course c = {.steps = steps, .estimator = estimator};
    const bel_loop own = {.size = sizeof own,
                          .functions = functions,
                          .function_count = 2,
                          .run = loop,
                          .user = &c,
                          .state = &c.memory,
                          .state_bytes = sizeof c.memory};
    const bel_train_spec train = {
        .size = sizeof train, .input_fn = input_fn, .input_user = &arguments[1], .loop = &own};
    bel_result result = {.size = sizeof result};
    int code = bel_run_job(estimator, &train, NULL, 0, &result);
    if (result.digest[0] != '\0') printf("digest %s\n", result.digest);
    bel_estimator_destroy(estimator);
    return code;
}
