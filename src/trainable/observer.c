// Buckets are those of TensorFlow's histograms: from 1e-12 on each is a tenth wider than the
// previous one, mirrored below 0, with a limit at 0. Runs of empty buckets are joined when writing.
#include "trainable/observer.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "features/image.h"

struct bel_observer {
    char *folder;
    const bel_summary **summaries;
    int count;
    bel_event_file *events; // NULL: not opened yet, or disabled
    bool given_up;
    int64_t step; // step of the last values; -1: no values yet
    double *list; // memory of histograms
    uint8_t *pixels;
    size_t pixel_capacity;
    bel_str png;
};

// --- Histograms ----------------------------------------------------------------------------------

// Lists the upper ends of all buckets, ascending; returns their number. The lower half mirrors the
// upper one.
static int list_limits(double *limits)
{
    int half = 0, count = 0;
    double upper[BEL_HISTOGRAM_ROOM / 4];
    for (double v = 1e-12; v < 1e20; v *= 1.1)
        upper[half++] = v;
    upper[half++] = DBL_MAX;
    for (int i = half; i-- > 0;)
        limits[count++] = -upper[i];
    limits[count++] = 0;
    for (int i = 0; i < half; i++)
        limits[count++] = upper[i];
    return count;
}

// Finds the first limit above x: bucket i holds [limit i - 1, limit i).
static int find_bucket(const double *limits, int count, double x)
{
    int low = 0, high = count - 1; // DBL_MAX is above every float
    while (low < high) {
        int middle = (low + high) / 2;
        if (limits[middle] > x) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

// Joins empty buckets with their neighbors, in place; keeps at least one bucket.
static int join_empty(double *limits, double *buckets, int count)
{
    int kept = 0;
    for (int i = 0; i < count; kept++) {
        double end = limits[i], number = buckets[i++];
        for (; number == 0 && i < count && buckets[i] == 0; i++)
            end = limits[i];
        limits[kept] = end;
        buckets[kept] = number;
    }
    return kept;
}

int64_t bel_histogram_make(const float *numbers, int64_t n, double *list, bel_histogram *out)
{
    double *limits = list, *buckets = list + BEL_HISTOGRAM_ROOM / 2;
    int count = list_limits(limits);
    int64_t left_out = 0;
    *out = (bel_histogram){.limits = limits, .buckets = buckets};
    memset(buckets, 0, (size_t)count * sizeof *buckets);
    for (int64_t i = 0; i < n; i++) {
        double x = (double)numbers[i];
        if (!isfinite(x)) {
            left_out++;
            continue;
        }
        out->min = out->count == 0 || x < out->min ? x : out->min;
        out->max = out->count == 0 || x > out->max ? x : out->max;
        out->count++;
        out->sum += x;
        out->sum_squares += x * x;
        buckets[find_bucket(limits, count, x)]++;
    }
    out->bucket_count = join_empty(limits, buckets, count);
    return left_out;
}

static void write_histogram(bel_observer *o, double now, const bel_summary *summary,
                            const bel_tensor *value)
{
    bel_histogram histogram;
    int64_t left_out =
        bel_histogram_make(value->data, bel_shape_elements(&value->shape), o->list, &histogram);
    bel_event_file_histogram(o->events, now, o->step, summary->name, &histogram);
    if (left_out == 0) return;
    char *tag = bel_strf("%s/not_finite", summary->name);
    bel_event_file_scalar(o->events, now, o->step, tag, (float)left_out);
    bel_free(tag);
}

// --- Images --------------------------------------------------------------------------------------

static uint8_t brightness(float x)
{
    if (!(x > 0)) return 0; // also for NaN
    return x < 1 ? (uint8_t)lrintf(x * 255) : 255;
}

// Converts [c, h, w] to interleaved pixels.
static void interleave(const bel_tensor *value, int64_t image, uint8_t *pixels)
{
    int64_t channels = value->shape.dims[1], area = value->shape.dims[2] * value->shape.dims[3];
    int64_t begin = image * channels * area;
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t i = 0; i < area; i++) {
            int64_t at = begin + c * area + i;
            pixels[i * channels + c] = value->dtype == BEL_DTYPE_U8
                                           ? ((const uint8_t *)value->data)[at]
                                           : brightness(((const float *)value->data)[at]);
        }
    }
}

static bel_status *write_images(bel_observer *o, double now, const bel_summary *summary,
                                const bel_tensor *value)
{
    const int64_t *dims = value->shape.dims;
    int64_t count = dims[0] < summary->most ? dims[0] : summary->most;
    size_t bytes = (size_t)(dims[1] * dims[2] * dims[3]);
    if (bytes == 0) return NULL;
    o->pixels = bel_xgrow(o->pixels, &o->pixel_capacity, bytes, 1);
    for (int64_t i = 0; i < count; i++) {
        const bel_image picture = {
            .height = dims[2], .width = dims[3], .channels = dims[1], .pixels = o->pixels};
        interleave(value, i, o->pixels);
        o->png.length = 0;
        BEL_TRY(bel_png_encode(&picture, &o->png));
        const bel_event_image image = {.height = (int)dims[2],
                                       .width = (int)dims[3],
                                       .channels = (int)dims[1],
                                       .png = o->png.text,
                                       .png_bytes = o->png.length};
        char *tag = bel_strf("%s/%lld", summary->name, (long long)i);
        bel_event_file_image(o->events, now, o->step, tag, &image);
        bel_free(tag);
    }
    return NULL;
}

// --- The observer --------------------------------------------------------------------------------

bel_observer *bel_observer_create(const char *model_dir, const bel_summary *const *summaries,
                                  int count)
{
    bel_observer *o = bel_xcalloc(1, sizeof *o);
    o->folder = bel_path_join(model_dir, BEL_OBSERVER_FOLDER);
    o->summaries = bel_xcalloc((size_t)count + 1, sizeof(bel_summary *));
    memcpy(o->summaries, summaries, (size_t)count * sizeof(bel_summary *));
    o->count = count;
    o->step = -1;
    o->list = bel_xcalloc(BEL_HISTOGRAM_ROOM, sizeof *o->list);
    return o;
}

static void give_up(bel_observer *o, bel_status *status)
{
    if (status == NULL) return;
    if (!o->given_up) {
        bel_log_write(BEL_LOG_WARN, "no more histograms and images are written: %s",
                      bel_status_message(status));
    }
    o->given_up = true;
    bel_status_ignore(status); // reported; training continues
}

void bel_observer_destroy(bel_observer *o)
{
    if (o == NULL) return;
    give_up(o, bel_event_file_close(o->events));
    bel_free(o->folder);
    bel_free(o->summaries);
    bel_free(o->list);
    bel_free(o->pixels);
    bel_str_deinit(&o->png);
    bel_free(o);
}

static bel_status *write_all(bel_observer *o, int64_t step, const bel_tensor *values)
{
    double now = bel_clock_wall();
    bool begins = o->events == NULL || step <= o->step;
    if (o->events == NULL) BEL_TRY(bel_event_file_open(o->folder, &o->events));
    if (begins) bel_event_file_session_start(o->events, step);
    o->step = step;
    for (int i = 0; i < o->count; i++) {
        if (o->summaries[i]->kind == BEL_SUMMARY_HISTOGRAM) {
            write_histogram(o, now, o->summaries[i], &values[i]);
        } else {
            BEL_TRY_CTX(write_images(o, now, o->summaries[i], &values[i]), "image \"%s\"",
                        o->summaries[i]->name);
        }
    }
    return bel_event_file_flush(o->events);
}

void bel_observer_take(bel_observer *o, int64_t step, const bel_tensor *values)
{
    if (!o->given_up) give_up(o, write_all(o, step, values));
}
