// Tests of histograms, images and texts. The files have the values that replica 0 saw, in every
// deal and after a run resumes, and no bit of the training changes. Read back by protobuf-c, and by
// protoc too if it is installed. label: threads
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "events.pb-c.h"
#include "support/bel_test.h"
#include "support/digits.h"
#include "trainable/observer.h"

enum { STEPS = 12, EVERY = 5, PIXELS = 64, SIDE = 8 };

static int64_t batch = 16;
static bool summarizes, takes_turns;

static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_context_only_feature(context), *labels = bel_context_labels(context);
    bel_value *logits = bel_dense(g, bel_dropout(g, x, 0.25), 10, "logits");
    bel_predictions_set(spec, bel_softmax(g, logits));
    bel_value *loss = bel_mean(g, bel_softmax_cross_entropy(g, logits, labels));
    bel_loss_set(spec, loss);
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = BEL_OPTIMIZER_ADAM,
                                       .learning_rate = 0.01});
    if (!summarizes) return NULL;
    const bel_shape shape = BEL_SHAPE(10);
    bel_value *bias =
        bel_variable(g, "logits/bias", &shape, (bel_initializer){0}, BEL_VARIABLE_TRAINABLE);
    bel_value *slope, *infinite = bel_reciprocal(g, bel_sub(g, x, x));
    bel_gradients(g, loss, &logits, 1, &slope);
    const bel_shape picture = BEL_SHAPE(0, 1, SIDE, SIDE);
    bel_summary_histogram(context, spec, "input", x);
    bel_summary_histogram(context, spec, "bias", bias);
    bel_summary_histogram(context, spec, "slope", slope);
    bel_summary_histogram(context, spec, "infinite", infinite);
    bel_summary_image(context, spec, "digit", bel_reshape(g, x, &picture), 3);
    bel_summary_scalar(context, spec, "own", loss);
    return NULL;
}

static bel_result train(const char *name, int workers, int64_t steps)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    char *folder = bel_path_join(bel_test_own_folder(), name);
    config.model_dir = folder;
    config.num_workers = workers;
    config.num_gpus = 2 / workers;
    config.save_summary_steps = EVERY;
    config.report = false;
    if (takes_turns) config.mode = BEL_AGGREGATE_BOUNDED;
    bel_estimator *estimator;
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_OK(bel_estimator_create(model, &config, NULL, 0, &estimator));
    const bel_train_spec spec = {.size = sizeof spec,
                                 .input_fn = bel_test_digits_input,
                                 .input_user = &batch,
                                 .max_steps = steps};
    BEL_ASSERT_OK(bel_train(estimator, &spec, &result));
    bel_estimator_destroy(estimator);
    bel_free(folder);
    return result;
}

// --- Reading -------------------------------------------------------------------------------------

typedef void each_fn(void *user, const Events__Event *event);

// Reads every event of a folder's files, in the order of their names.
static void read_folder(const char *name, each_fn *each, void *user)
{
    char *folder = bel_path_join(bel_test_own_folder(), name), **names;
    size_t count;
    BEL_ASSERT_OK(bel_dir_list(folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], BEL_EVENT_FILE_PREFIX, strlen(BEL_EVENT_FILE_PREFIX)) != 0) continue;
        char *path = bel_path_join(folder, names[i]), *data;
        size_t size;
        BEL_ASSERT_OK(bel_file_read(path, &data, &size));
        for (size_t at = 0; at < size;) {
            uint64_t length;
            memcpy(&length, data + at, sizeof length);
            const uint8_t *bytes = (const uint8_t *)data + at + 12;
            Events__Event *event = events__event__unpack(NULL, length, bytes);
            assert_non_null(event);
            each(user, event);
            events__event__free_unpacked(event, NULL);
            at += 16 + length;
        }
        bel_free(data);
        bel_free(path);
    }
    bel_dir_names_free(names, count);
    bel_free(folder);
}

typedef struct seen {
    bel_str steps[2]; // steps of "input" and "digit/2"
    int starts, histograms, images, others;
    bel_str bits; // bits of all histograms and images
    double bias_max;
} seen;

static void note(void *user, const Events__Event *event)
{
    seen *s = user;
    if (event->what_case == EVENTS__EVENT__WHAT_SESSION_LOG) s->starts++;
    if (event->what_case != EVENTS__EVENT__WHAT_SUMMARY) return;
    assert_int_equal(event->summary->n_value, 1);
    const Events__Value *value = event->summary->value[0];
    long long step = event->step;
    if (strcmp(value->tag, "input") == 0) bel_str_printf(&s->steps[0], "%lld ", step);
    if (strcmp(value->tag, "digit/2") == 0) bel_str_printf(&s->steps[1], "%lld ", step);
    if (value->what_case == EVENTS__VALUE__WHAT_HISTO) {
        const Events__Histogram *h = value->histo;
        double count = 0;
        s->histograms++;
        assert_int_equal(h->n_bucket, h->n_bucket_limit);
        for (size_t i = 0; i < h->n_bucket; i++)
            count += h->bucket[i];
        assert_true(count == h->num && h->bucket_limit[h->n_bucket - 1] == DBL_MAX);
        if (strcmp(value->tag, "input") == 0) assert_true(h->num == 16 * PIXELS && h->min == 0);
        if (strcmp(value->tag, "infinite") == 0) assert_true(h->num == 0);
        if (strcmp(value->tag, "bias") == 0) s->bias_max = h->max;
        if (strcmp(value->tag, "bias") == 0 && step == 1) assert_true(h->min == 0 && h->max == 0);
        bel_str_printf(&s->bits, "%s %a %a %a\n", value->tag, h->min, h->max, h->sum);
    } else if (value->what_case == EVENTS__VALUE__WHAT_IMAGE) {
        const Events__Image *image = value->image;
        s->images++;
        assert_true(image->height == SIDE && image->width == SIDE && image->colorspace == 1);
        const ProtobufCBinaryData *png = &image->encoded_image_string;
        assert_memory_equal(png->data, "\x89PNG\r\n\x1a\n", 8);
        bel_str_append(&s->bits, (const char *)png->data, png->len);
    } else {
        s->others++;
        assert_string_equal(value->tag, "infinite/not_finite");
        assert_true(value->simple_value == 16 * PIXELS);
    }
}

static seen look(const char *name)
{
    seen s = {.starts = 0};
    bel_str_puts(&s.steps[0], "");
    bel_str_puts(&s.steps[1], "");
    read_folder(name, note, &s);
    return s;
}

static void forget(seen *s)
{
    bel_str_deinit(&s->steps[0]);
    bel_str_deinit(&s->steps[1]);
    bel_str_deinit(&s->bits);
}

// --- Tests ---------------------------------------------------------------------------------------

static void test_observed(void **state)
{
    (void)state;
    summarizes = false;
    bel_result plain = train("plain", 1, STEPS);
    summarizes = true;
    bel_result one = train("one", 1, STEPS), two = train("two", 2, STEPS);
    assert_string_equal(one.digest, plain.digest);
    assert_string_equal(two.digest, plain.digest);
    seen first = look("one/" BEL_OBSERVER_FOLDER), second = look("two/" BEL_OBSERVER_FOLDER);
    assert_string_equal(first.steps[0].text, "1 5 10 ");
    assert_string_equal(first.steps[1].text, "1 5 10 ");
    assert_int_equal(first.starts, 1);
    assert_int_equal(first.histograms, 3 * 4);
    assert_int_equal(first.images, 3 * 3);
    assert_int_equal(first.others, 3);
    assert_true(first.bias_max > 0); // the model has learnt
    assert_int_equal(first.bits.length, second.bits.length);
    assert_memory_equal(first.bits.text, second.bits.text, first.bits.length);
    forget(&first);
    forget(&second);
}

// Some versions have no report of replica 0, but each worker makes one within a few: the first one
// after a multiple stands for it.
static void test_some_versions(void **state)
{
    (void)state;
    enum { MANY = 200 };
    summarizes = takes_turns = true;
    train("turns", 2, MANY);
    takes_turns = false;
    seen s = look("turns/" BEL_OBSERVER_FOLDER);
    assert_in_range(s.histograms / 4, MANY / EVERY - 2, MANY / EVERY + 1);
    forget(&s);
}

// A resumed run begins a separate file, whose mark voids repeated steps.
static void test_goes_on(void **state)
{
    (void)state;
    summarizes = true;
    train("run", 1, 7);
    train("run", 2, STEPS);
    seen s = look("run/" BEL_OBSERVER_FOLDER);
    assert_string_equal(s.steps[0].text, "1 5 8 10 ");
    assert_int_equal(s.starts, 2);
    forget(&s);
}

// If the folder is not writable, only the summaries are lost.
static void test_no_folder(void **state)
{
    (void)state;
    summarizes = true;
    char *dir = bel_path_join(bel_test_own_folder(), "blocked");
    BEL_ASSERT_OK(bel_dir_create(dir));
    bel_free(bel_test_file(dir, BEL_OBSERVER_FOLDER, "x", 1));
    bel_result blocked = train("blocked", 1, STEPS), free_one = train("free", 1, STEPS);
    assert_string_equal(blocked.digest, free_one.digest);
    bel_free(dir);
}

static void test_histogram(void **state)
{
    (void)state;
    static const float numbers[] = {-2, 0, 0, 1e-13F, 0.5F, 3, INFINITY, NAN, -INFINITY, 3.4e38F};
    double *list = bel_xcalloc(BEL_HISTOGRAM_ROOM, sizeof *list), before = -DBL_MAX, count = 0;
    bel_histogram h;
    assert_int_equal(bel_histogram_make(numbers, 10, list, &h), 3);
    assert_true(h.count == 7 && h.min == -2 && h.max == (double)3.4e38F);
    for (int i = 0; i < h.bucket_count; i++) { // each number is in its bucket
        double here = 0;
        for (int k = 0; k < 10; k++) {
            double x = (double)numbers[k];
            here += isfinite(x) && x >= before && x < h.limits[i];
        }
        assert_true(h.buckets[i] == here);
        assert_true(i == 0 || h.limits[i] > h.limits[i - 1]);
        before = h.limits[i];
        count += h.buckets[i];
    }
    assert_true(count == 7 && h.bucket_count < 15);
    assert_int_equal(bel_histogram_make(numbers, 0, list, &h), 0);
    assert_true(h.count == 0 && h.bucket_count == 1 && h.limits[0] == DBL_MAX);
    bel_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_observed), BEL_TEST_IN_FOLDER(test_goes_on),
        BEL_TEST_IN_FOLDER(test_some_versions), BEL_TEST_IN_FOLDER(test_no_folder),
        cmocka_unit_test(test_histogram)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
