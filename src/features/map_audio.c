// The map of bel_dataset_map_audio: path -> file -> wave -> the options' rate -> features. Weights
// for resampling are computed for the first file of each rate and kept, as a data set has few
// rates. With more than MAX_KEPT rates, the others are computed for each file. Kept weights are
// immutable and found under a lock. They are computed without it, so two threads may compute the
// same ones, and one copy is dropped.
#include <pthread.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "base/str.h"
#include "features/audio.h"
#include "features/record_file.h"
#include "features/resample.h"

enum { MAX_KEPT = 16, MAX_NUMBERS = 1 << 28 };

typedef struct kept_resampler {
    int64_t from_rate;
    bel_resampler *resampler;
} kept_resampler;

typedef struct audio_map {
    bel_file_options file;
    char *field;
    char *length_field; // NULL: none
    bel_audio *audio;   // NULL if `wrong` has the reason
    bel_status *wrong;
    pthread_mutex_t mutex; // guards the rest
    kept_resampler kept[MAX_KEPT];
    int kept_count;
} audio_map;

static const bel_resampler *find_kept(audio_map *map, int64_t rate)
{
    const bel_resampler *found = NULL;
    pthread_mutex_lock(&map->mutex);
    for (int i = 0; i < map->kept_count && found == NULL; i++) {
        if (map->kept[i].from_rate == rate) found = map->kept[i].resampler;
    }
    pthread_mutex_unlock(&map->mutex);
    return found;
}

// Keeps a resampler unless its rate is present or no slot is free; returns whether it was kept.
static bool audio_map_keep(audio_map *map, int64_t rate, bel_resampler *resampler)
{
    pthread_mutex_lock(&map->mutex);
    bool known = false;
    for (int i = 0; i < map->kept_count; i++)
        known = known || map->kept[i].from_rate == rate;
    bool room = !known && map->kept_count < MAX_KEPT;
    if (room) map->kept[map->kept_count++] = (kept_resampler){rate, resampler};
    pthread_mutex_unlock(&map->mutex);
    return room;
}

// Resamples the wave to the rate of the features.
static bel_status *bring_to_rate(audio_map *map, bel_wave *wave)
{
    int64_t rate = bel_audio_sample_rate(map->audio), from_rate = wave->sample_rate;
    if (from_rate == rate) return NULL;
    const bel_resampler *resampler = find_kept(map, from_rate);
    bel_resampler *own = NULL;
    if (resampler == NULL) {
        BEL_TRY(bel_resampler_create(from_rate, rate, &own));
        resampler = own;
    }
    bel_wave other;
    bel_status *status = bel_resampler_run(resampler, wave, &other);
    if (own != NULL && !audio_map_keep(map, from_rate, own)) bel_resampler_destroy(own);
    BEL_TRY(status);
    bel_wave_deinit(wave);
    *wave = other;
    return NULL;
}

static bel_status *add_features(audio_map *map, bel_wave *wave, bel_record *record)
{
    BEL_TRY(bring_to_rate(map, wave));
    int64_t frames = bel_audio_frame_count(map->audio, wave->sample_count);
    int64_t width = bel_audio_width(map->audio);
    if (frames > MAX_NUMBERS / width) {
        return BEL_ERR(BEL_DATA_LOSS, "expected at most %d features, got %lld frames of %lld",
                       MAX_NUMBERS, (long long)frames, (long long)width);
    }
    float *out = bel_record_add(record, map->field, BEL_DTYPE_F32, &BEL_SHAPE(frames, width));
    if (out == NULL) return NULL; // the record has the error
    bel_audio_compute(map->audio, wave->samples, wave->sample_count, out);
    if (map->length_field == NULL) return NULL;
    bel_shape scalar = bel_shape_scalar();
    int64_t *length = bel_record_add(record, map->length_field, BEL_DTYPE_I64, &scalar);
    if (length != NULL) *length = frames;
    return NULL;
}

static bel_status *map_record(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    audio_map *map = user;
    if (map->wrong != NULL) {
        return BEL_ERR(bel_status_code(map->wrong), "%s", bel_status_message(map->wrong));
    }
    bel_str path = {0};
    bel_wave wave = {0};
    bel_status *status = bel_record_file_path(record, &map->file, &path);
    if (status == NULL) status = bel_wave_read(path.text, map->file.max_bytes, &wave);
    if (status == NULL) {
        status = add_features(map, &wave, record);
        if (status != NULL) status = bel_status_wrap(status, __FILE__, __LINE__, "%s", path.text);
    }
    bel_wave_deinit(&wave);
    bel_str_deinit(&path);
    return status;
}

static void map_audio_destroy(void *user)
{
    audio_map *map = user;
    for (int i = 0; i < map->kept_count; i++)
        bel_resampler_destroy(map->kept[i].resampler);
    pthread_mutex_destroy(&map->mutex);
    bel_file_options_deinit(&map->file);
    bel_audio_destroy(map->audio);
    bel_status_destroy(map->wrong);
    bel_free(map->field);
    bel_free(map->length_field);
    bel_free(map);
}

// Writes all that determines the features, except the files.
static void map_audio_identify(const bel_audio_options *o, const audio_map *map, bel_str *out)
{
    const char *length_field = map->length_field == NULL ? "" : map->length_field;
    bel_str_printf(out, "audio 1 %s %s %s kind=%d rate=%lld frame=%a hop=%a window=%d fft=%lld",
                   bel_drop_path(&map->file).names[0], map->field, length_field, (int)o->kind,
                   (long long)o->sample_rate, o->frame_ms, o->hop_ms, (int)o->window,
                   (long long)o->fft_size);
    bel_str_printf(out, " scale=%d mel=%lld low=%a high=%a floor=%a mfcc=%lld deltas=%lld",
                   (int)o->mel_scale, (long long)o->mel_count, o->low_hz, o->high_hz,
                   o->power_floor, (long long)o->mfcc_count, (long long)o->delta_order);
}

void bel_dataset_map_audio(bel_dataset *dataset, const bel_audio_options *given)
{
    audio_map *map = bel_xcalloc(1, sizeof *map);
    bel_audio_options copy;
    const bel_audio_options *options = &copy;
    map->wrong = bel_sized_take(&copy, sizeof copy, given, "bel_audio_options");
    pthread_mutex_init(&map->mutex, NULL);
    bel_file_options_copy(&options->file, &map->file);
    map->field = bel_xstrdup(options->field == NULL ? "x" : options->field);
    if (options->length_field != NULL) map->length_field = bel_xstrdup(options->length_field);
    if (map->wrong == NULL) map->wrong = bel_audio_create(options, &map->audio);
    bel_drop_list drop = bel_drop_path(&map->file);
    bel_str identity = {0};
    map_audio_identify(options, map, &identity);
    bel_dataset_named_files(dataset, drop.names[0], map->file.folder);
    bel_dataset_map_owned(dataset, map_record, map, map_audio_destroy, identity.text, drop.names);
    bel_str_deinit(&identity);
}
