// The map of bel_dataset_map_image. A plan describes the steps of one image: the window to scale,
// its new size, the part to keep, and random changes. Each choice has a separate random number
// (bel_record_random), so one option does not change another's result. Scaling and cropping are one
// step, since only the kept part needs computing, unless the scaled image is rotated or padded in
// between.
#include <math.h>

#include "base/alloc.h"
#include "base/real.h"
#include "base/sized.h"
#include "base/str.h"
#include "features/image.h"
#include "features/record_file.h"

// Indices of the choices' random numbers; the tries of random_area begin with AREA, four each.
enum { CHOICE_TURN, CHOICE_ROTATE, CHOICE_FLIP, CHOICE_TOP, CHOICE_LEFT, CHOICE_AREA };
enum { AREA_TRIES = 10 };

typedef struct image_map {
    bel_image_options options; // owns its texts; sizes and channels are filled in
    char *field;
    bel_status *wrong; // why the options are invalid
} image_map;

// --- Options -------------------------------------------------------------------------------------

static bool is_part(double value) // false for NaN
{
    return value >= 0 && value <= 1;
}

static bel_status *check_sizes(const bel_image_options *o)
{
    bool sized = o->height != 0 || o->width != 0;
    if (sized) BEL_TRY(bel_image_check_sides(o->height, o->width));
    if (!sized && (o->resize_short != 0 || o->pad != 0 || o->random_crop || o->random_area > 0)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "image: expected a height and width with resize_short, "
                       "pad, random_crop or random_area, got none");
    }
    int64_t longer = o->height > o->width ? o->height : o->width;
    if (o->resize_short != 0 &&
        (o->resize_short < longer || o->resize_short > BEL_IMAGE_MAX_SIDE)) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "image: expected a resize_short of at least height and width (%lld), got %lld",
            (long long)longer, (long long)o->resize_short);
    }
    if (o->pad < 0 || o->pad > BEL_IMAGE_MAX_SIDE) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "image: expected a pad in 0..%d, got %lld",
                       BEL_IMAGE_MAX_SIDE, (long long)o->pad);
    }
    if (o->random_area > 0 && (o->resize_short != 0 || o->pad != 0 || o->random_crop)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "image: random_area does not go with resize_short, pad and random_crop");
    }
    return NULL;
}

static bel_status *check_options(const bel_image_options *o)
{
    if (o->channels != 1 && o->channels != 3) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "image: expected 1 or 3 channels, got %lld",
                       (long long)o->channels);
    }
    if (o->filter < BEL_IMAGE_BILINEAR || o->filter > BEL_IMAGE_NEAREST) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "image: there is no filter %d", (int)o->filter);
    }
    BEL_TRY(check_sizes(o));
    if (!is_part(o->random_flip) || !is_part(o->random_area)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "image: expected random_flip and random_area in 0..1, got %g and %g",
                       o->random_flip, o->random_area);
    }
    if (!(o->random_rotate >= 0 && o->random_rotate <= 180)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "image: expected random_rotate in 0..180, got %g",
                       o->random_rotate);
    }
    for (int c = 0; c < 3; c++) {
        if (!isfinite(o->scale) || !isfinite(o->mean[c]) || !isfinite(o->deviation[c])) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "image: expected finite scale, mean and deviation, got %g, %g, %g",
                           o->scale, o->mean[c], o->deviation[c]);
        }
    }
    return NULL;
}

// --- One image -----------------------------------------------------------------------------------

// Chooses an integer in 0 … most, uniformly.
static int64_t image_map_choose(const image_map *map, const bel_record *record, uint32_t choice,
                                int64_t most)
{
    double random = bel_record_random(record, map->options.seed, choice);
    return (int64_t)(random * (double)(most + 1));
}

// Chooses the window of random_area; if no try fits, a window in the middle.
static void choose_window(const image_map *map, const bel_record *record, const bel_image *image,
                          bel_image_scaling *s)
{
    const double low = bel_real_log(0.75), high = bel_real_log(4.0 / 3);
    double area = (double)image->height * (double)image->width;
    for (uint32_t i = 0; i < AREA_TRIES; i++) {
        uint32_t choice = CHOICE_AREA + 4 * i;
        double part = bel_record_random(record, map->options.seed, choice);
        double shape = bel_record_random(record, map->options.seed, choice + 1);
        double target = area * (map->options.random_area + (1 - map->options.random_area) * part);
        double ratio = bel_real_exp(low + (high - low) * shape); // width over height
        int64_t width = (int64_t)floor(sqrt(target * ratio) + 0.5);
        int64_t height = (int64_t)floor(sqrt(target / ratio) + 0.5);
        if (width < 1 || height < 1 || width > image->width || height > image->height) continue;
        s->window_height = height;
        s->window_width = width;
        s->top = image_map_choose(map, record, choice + 2, image->height - height);
        s->left = image_map_choose(map, record, choice + 3, image->width - width);
        return;
    }
    // The largest window of the nearest allowed proportions.
    if (4 * image->height < 3 * image->width) {
        s->window_width = (image->height * 4 + 2) / 3;
    } else if (4 * image->width < 3 * image->height) {
        s->window_height = (image->width * 4 + 2) / 3;
    }
    s->top = (image->height - s->window_height) / 2;
    s->left = (image->width - s->window_width) / 2;
}

// Chooses the scaled height and width of an image; those of the file without a requested size.
static void choose_size(const bel_image_options *o, int64_t height, int64_t width,
                        int64_t *out_height, int64_t *out_width)
{
    *out_height = o->height == 0 ? height : o->height;
    *out_width = o->width == 0 ? width : o->width;
    if (o->resize_short == 0) return;
    int64_t shorter = height < width ? height : width;
    *out_height = (height * o->resize_short + shorter / 2) / shorter;
    *out_width = (width * o->resize_short + shorter / 2) / shorter;
}

// Chooses the start of the wanted part within `padded` places.
static int64_t choose_part(const image_map *map, const bel_record *record, uint32_t choice,
                           int64_t padded, int64_t wanted)
{
    int64_t most = padded - wanted;
    return map->options.random_crop ? image_map_choose(map, record, choice, most) : most / 2;
}

static void image_replace(bel_image *image, bel_image by)
{
    bel_image_deinit(image);
    *image = by;
}

// Resizes, rotates and crops.
static bel_status *shape_image(const image_map *map, const bel_record *record, bel_image *image)
{
    const bel_image_options *o = &map->options;
    bel_image_scaling s = {
        .window_height = image->height, .window_width = image->width, .filter = o->filter};
    if (o->random_area > 0) choose_window(map, record, image, &s);
    choose_size(o, image->height, image->width, &s.height, &s.width);
    if (s.height > BEL_IMAGE_MAX_PIXELS / s.width) { // a strip of a few pixels scaled wide
        return BEL_ERR(BEL_DATA_LOSS, "expected at most %d pixels when scaled, got %lld x %lld",
                       BEL_IMAGE_MAX_PIXELS, (long long)s.width, (long long)s.height);
    }
    int64_t height = o->height == 0 ? s.height : o->height;
    int64_t width = o->width == 0 ? s.width : o->width;
    int64_t top = choose_part(map, record, CHOICE_TOP, s.height + 2 * o->pad, height) - o->pad;
    int64_t left = choose_part(map, record, CHOICE_LEFT, s.width + 2 * o->pad, width) - o->pad;
    bool between = o->random_rotate > 0 || o->pad > 0;
    s.part_top = between ? 0 : top;
    s.part_left = between ? 0 : left;
    s.part_height = between ? s.height : height;
    s.part_width = between ? s.width : width;
    image_replace(image, bel_image_scale(image, &s));
    bel_image next;
    if (o->random_rotate > 0) {
        double random = bel_record_random(record, o->seed, CHOICE_ROTATE);
        BEL_TRY(bel_image_rotate(image, o->random_rotate * (2 * random - 1), &next));
        image_replace(image, next);
    }
    if (between) {
        BEL_TRY(bel_image_crop(image, top, left, height, width, &next));
        image_replace(image, next);
    }
    return NULL;
}

static bel_status *change_image(const image_map *map, const bel_record *record, bel_image *image)
{
    const bel_image_options *o = &map->options;
    if (o->random_turn) {
        bel_image turned;
        BEL_TRY(bel_image_turn(image, image_map_choose(map, record, CHOICE_TURN, 3), &turned));
        image_replace(image, turned);
    }
    if (o->height != 0 || o->random_rotate > 0) BEL_TRY(shape_image(map, record, image));
    if (o->random_flip > 0 && bel_record_random(record, o->seed, CHOICE_FLIP) < o->random_flip) {
        bel_image_flip(image);
    }
    return NULL;
}

// --- The map -------------------------------------------------------------------------------------

// Chooses the minimum size for reading an image. With random_area a small window may fill the
// result, and a turned image may have either orientation.
static bel_image_read_options read_options(const bel_image_options *o)
{
    bel_image_read_options read = {.size = sizeof read,
                                   .channels = o->channels,
                                   .max_bytes = o->file.max_bytes,
                                   .max_pixels = o->max_pixels};
    if (o->height == 0 || o->random_area > 0) return read;
    int64_t longer = o->height > o->width ? o->height : o->width;
    read.enough_height = o->random_turn ? longer : o->height;
    read.enough_width = o->random_turn ? longer : o->width;
    if (o->resize_short > 0) read.enough_height = read.enough_width = o->resize_short;
    return read;
}

static bel_status *map_record(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    const image_map *map = user;
    const bel_image_options *o = &map->options;
    if (map->wrong != NULL) {
        return BEL_ERR(bel_status_code(map->wrong), "%s", bel_status_message(map->wrong));
    }
    bel_str path = {0};
    bel_image image = {0};
    bel_image_read_options read = read_options(o);
    bel_status *status = bel_record_file_path(record, &o->file, &path);
    if (status == NULL) status = bel_image_read(path.text, &read, &image);
    if (status == NULL) {
        status = change_image(map, record, &image);
        if (status != NULL) status = bel_status_wrap(status, __FILE__, __LINE__, "%s", path.text);
    }
    if (status == NULL) {
        bel_shape shape = o->channels_last ? BEL_SHAPE(image.height, image.width, image.channels)
                                           : BEL_SHAPE(image.channels, image.height, image.width);
        float *out = bel_record_add(record, map->field, BEL_DTYPE_F32, &shape);
        if (out != NULL) { // else the record has the error
            bel_image_normalize(&image, o->scale, o->mean, o->deviation, o->channels_last, out);
        }
    }
    bel_image_deinit(&image);
    bel_str_deinit(&path);
    return status;
}

static void map_image_destroy(void *user)
{
    image_map *map = user;
    bel_file_options_deinit(&map->options.file);
    bel_status_destroy(map->wrong);
    bel_free(map->field);
    bel_free(map);
}

// Writes all that determines the pixels, except the files.
static void image_map_identify(const image_map *map, bel_str *out)
{
    const bel_image_options *o = &map->options;
    bel_str_printf(out, "image 1 %s %s channels=%lld size=%lldx%lld short=%lld filter=%d pad=%lld",
                   bel_drop_path(&o->file).names[0], map->field, (long long)o->channels,
                   (long long)o->width, (long long)o->height, (long long)o->resize_short,
                   (int)o->filter, (long long)o->pad);
    bel_str_printf(out, " crop=%d area=%a flip=%a turn=%d rotate=%a seed=%llu scale=%a last=%d",
                   o->random_crop, o->random_area, o->random_flip, o->random_turn, o->random_rotate,
                   (unsigned long long)o->seed, o->scale, o->channels_last);
    for (int c = 0; c < 3; c++)
        bel_str_printf(out, " %a/%a", o->mean[c], o->deviation[c]);
}

void bel_dataset_map_image(bel_dataset *dataset, const bel_image_options *options)
{
    image_map *map = bel_xcalloc(1, sizeof *map);
    map->wrong = bel_sized_take(&map->options, sizeof map->options, options, "bel_image_options");
    if (map->options.channels == 0) map->options.channels = 3;
    bel_file_options file = map->options.file;
    bel_file_options_copy(&file, &map->options.file);
    map->field = bel_xstrdup(map->options.field == NULL ? "x" : map->options.field);
    map->options.field = NULL; // the caller's
    if (map->wrong == NULL) map->wrong = check_options(&map->options);
    bel_drop_list drop = bel_drop_path(&map->options.file);
    bel_str identity = {0};
    image_map_identify(map, &identity);
    bel_dataset_named_files(dataset, drop.names[0], map->options.file.folder);
    bel_dataset_map_owned(dataset, map_record, map, map_image_destroy, identity.text, drop.names);
    bel_str_deinit(&identity);
}
