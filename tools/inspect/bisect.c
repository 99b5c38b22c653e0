// Verb bisect: the first step and tensor at which two trainings differ.
//
// Digests of manifests find the step, so only the checkpoints of one step are read. The steps that
// both have saved are compared in order, not by bisection: manifests are small, and a training that
// went back may be equal again later. A digest is that of the manifest; shard files are checked
// when they are read. So steps with equal digests are equal by their manifests only, and damaged
// files of the step that differs leave what is known so far: the step, the settings, the curves.
#include "inspect/bisect.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "checkpoint/files.h"
#include "checkpoint/setting_names.h"
#include "command/results.h"
#include "command/stores.h"
#include "command/verbs.h"

// A model folder, or a checkpoint.
typedef struct side {
    char *path;
    bool is_checkpoint;
    bel_ckpt_reader *reader; // the checkpoint, open at once, as its owner may remove it
    int64_t *steps;          // steps of a model folder, ascending
    size_t count;
} side;

// --- Sides ---------------------------------------------------------------------------------------

static void close_side(side *s)
{
    bel_ckpt_close(s->reader);
    bel_free(s->path);
    bel_free(s->steps);
}

static bel_status *open_side(const char *text, side *out)
{
    BEL_TRY(bel_store_path_to_read(text, true, &out->path));
    char *manifest = bel_path_join(out->path, BEL_CKPT_MANIFEST);
    out->is_checkpoint = bel_file_exists(manifest);
    bel_free(manifest);
    if (out->is_checkpoint) return bel_ckpt_open_lazily(out->path, &out->reader);
    if (!bel_dir_exists(out->path))
        return BEL_ERR(BEL_NOT_FOUND,
                       "there is no folder %s (expected: a model's, or a checkpoint's)", out->path);
    BEL_TRY(bel_ckpt_list(out->path, &out->steps, &out->count));
    if (out->count == 0) return BEL_ERR(BEL_NOT_FOUND, "%s holds no checkpoint", out->path);
    return NULL;
}

// Appends "5, 10, 15", of many steps the first and the last ones.
static void put_steps(const side *s, bel_str *out)
{
    enum { SHOWN = 3 };
    for (size_t i = 0; i < s->count; i++) {
        bool gap = i == SHOWN && s->count > 2 * SHOWN;
        if (gap) i = s->count - SHOWN;
        bel_str_printf(out, "%s%lld", gap ? " … " : i > 0 ? ", " : "", (long long)s->steps[i]);
    }
}

// --- One step ------------------------------------------------------------------------------------

static bool same_digest(const bel_ckpt_reader *a, const bel_ckpt_reader *b)
{
    bel_hash128 x = bel_ckpt_reader_digest(a), y = bel_ckpt_reader_digest(b);
    return x.low == y.low && x.high == y.high;
}

// Opens the checkpoint of a step in the side's model folder, or takes the side's checkpoint.
static bel_status *open_at(side *s, int64_t step, bel_ckpt_reader **out_reader)
{
    if (!s->is_checkpoint) return bel_ckpt_open_listed(s->path, step, out_reader);
    *out_reader = s->reader;
    s->reader = NULL;
    return NULL;
}

static bel_status *open_pair(side *a, side *b, int64_t step, bel_ckpt_reader **out_a,
                             bel_ckpt_reader **out_b)
{
    BEL_TRY(open_at(a, step, out_a));
    bel_status *status = open_at(b, step, out_b);
    if (status != NULL) bel_ckpt_close(*out_a);
    return status;
}

// Keeps the name of a mode whose bits depend on timing. The one that made the first difference
// counts: that of the first checkpoint after it.
static void note_mode(const char *mode, bel_bisect_result *result)
{
    if (mode != NULL && result->mode.length == 0) bel_str_puts(&result->mode, mode);
}

static void note_equal(int64_t step, bel_bisect_result *result)
{
    result->equal_step = step;
    if (result->curve.tag == NULL || step < result->curve.step) result->equal_before = step;
}

// The settings are those of this pair; values are read only if the digests differ.
static void compare_pair(const bel_ckpt_reader *a, const bel_ckpt_reader *b, int64_t step,
                         bel_bisect_result *result)
{
    bel_str_deinit(&result->settings);
    bel_differences_settings(a, b, &result->settings);
    if (result->curve.tag == NULL || result->equal_step < result->curve.step) {
        bel_str_deinit(&result->mode);
        note_mode(bel_ckpt_setting(a, BEL_SETTING_MODE), result);
        note_mode(bel_ckpt_setting(b, BEL_SETTING_MODE), result);
    }
    result->compared++;
    result->step_a = bel_ckpt_reader_info(a)->step;
    result->step_b = bel_ckpt_reader_info(b)->step;
    if (same_digest(a, b)) {
        note_equal(step, result);
        return;
    }
    result->step = step;
    result->equal = false;
    bel_status *status = bel_differences_find(a, b, &result->differences);
    if (status != NULL) result->unread = bel_xstrdup(bel_status_message(status));
    bel_status_ignore(status); // the result has the message, and the differences found before
}

static bel_status *compare_step(side *a, side *b, int64_t step, bel_bisect_result *result)
{
    bel_ckpt_reader *reader_a, *reader_b;
    BEL_TRY(open_pair(a, b, step, &reader_a, &reader_b));
    compare_pair(reader_a, reader_b, step, result);
    bel_ckpt_close(reader_a);
    bel_ckpt_close(reader_b);
    return NULL;
}

// --- Two model folders ---------------------------------------------------------------------------

// Whether a step can be left out: a running job removed its checkpoint, or it is damaged.
static bool can_leave_out(bel_code code)
{
    return code == BEL_NOT_FOUND || code == BEL_DATA_LOSS;
}

static bel_status *compare_or_leave(side *a, side *b, int64_t step, bel_bisect_result *result)
{
    bel_status *status = compare_step(a, b, step, result);
    if (!can_leave_out(bel_status_code(status))) return status;
    bel_log_write(BEL_LOG_WARN, "step %lld is left out: %s", (long long)step,
                  bel_status_message(status));
    bel_status_ignore(status); // other steps may tell
    if (result->left_out++ == 0) result->first_left_out = step;
    return NULL;
}

static bel_status *compare_steps(side *a, side *b, bel_bisect_result *result)
{
    for (size_t i = 0, k = 0; i < a->count && k < b->count && result->step < 0;) {
        if (a->steps[i] != b->steps[k]) {
            a->steps[i] < b->steps[k] ? i++ : k++;
            continue;
        }
        BEL_TRY(compare_or_leave(a, b, a->steps[i], result));
        i++, k++;
    }
    return NULL;
}

// Without a checkpoint that was compared, and without a curve that differs, nothing is known of the
// values.
static bel_status *refuse_unknown(const side *a, const side *b, const bel_bisect_result *result)
{
    bel_str curves = {0}, steps_a = {0}, steps_b = {0};
    if (result->curve.points > 0)
        bel_str_printf(&curves, "; %lld points of their curves are equal",
                       (long long)result->curve.points);
    const char *too = curves.length > 0 ? curves.text : "";
    put_steps(a, &steps_a);
    put_steps(b, &steps_b);
    bel_status *status =
        result->left_out > 0
            ? BEL_ERR(BEL_DATA_LOSS, "no checkpoint of the same step can be read in %s and %s%s",
                      a->path, b->path, too)
            : BEL_ERR(BEL_NOT_FOUND,
                      "there is no step of which both have a checkpoint: %s has %s, %s has %s%s; "
                      "hint: train both with the same --save_checkpoints_steps and "
                      "--keep_checkpoint_max 0",
                      a->path, steps_a.text, b->path, steps_b.text, too);
    bel_str_deinit(&curves);
    bel_str_deinit(&steps_a);
    bel_str_deinit(&steps_b);
    return status;
}

// Describes how to find the step between the newest checkpoints that are equal before any
// difference, and the first difference.
static void advise_steps(bel_bisect_result *result)
{
    const bel_curve_difference *curve = &result->curve;
    int64_t from = result->equal_before, to = result->step;
    if (curve->tag != NULL && (to < 0 || curve->step < to)) to = curve->step;
    if (from < 0) {
        bel_str_printf(&result->next,
                       "to find the step, train both again beyond step %lld, with all their flags "
                       "and --save_checkpoints_steps 1 --keep_checkpoint_max 0",
                       (long long)to);
    } else if (to - from == 1) {
        bel_str_printf(
            &result->next,
            "the step from version %lld to %lld differs: its data (inspect --audit), its "
            "settings, or the arithmetic of a process (--check_replicas 1)",
            (long long)from, (long long)to);
    } else {
        bel_str_printf(
            &result->next,
            "to find the step from %lld to %lld, copy ckpt-%08lld of each (a delta with its "
            "base) into a new folder, and train both there beyond step %lld, with all their flags "
            "(--train_steps too, as schedules depend on it) and --save_checkpoints_steps 1 "
            "--keep_checkpoint_max 0; stop them after it",
            (long long)from, (long long)to, (long long)from, (long long)to);
    }
}

static void advise(bel_bisect_result *result)
{
    if (result->step < 0 && result->curve.tag == NULL) return;
    if (result->folders && result->step == 0) {
        bel_str_puts(&result->next,
                     "they begin with other values: another seed, initializer or warm start");
    } else if (result->mode.length > 0) {
        bel_str_printf(&result->next, "in mode %s the bits depend on timing (docs/modes.md)",
                       result->mode.text);
    } else if (result->folders) {
        advise_steps(result);
    }
}

// Curves are a help: files that cannot be read are a warning.
static void compare_curves(const side *a, const side *b, bel_bisect_result *result)
{
    bel_status *status = bel_bisect_curves(a->path, b->path, &result->curve);
    if (status != NULL)
        bel_log_write(BEL_LOG_WARN, "curves are left out: %s", bel_status_message(status));
    bel_status_ignore(status); // logged
    if (result->curve.tag != NULL) result->equal = false;
}

// A curve that differs after the last common checkpoint may be of a mode that began there.
static void note_newest_mode(const side *s, bel_bisect_result *result)
{
    char *mode = NULL;
    bel_status *status = bel_ckpt_latest_setting(s->path, BEL_SETTING_MODE, &mode);
    if (status == NULL) note_mode(mode, result);
    bel_status_ignore(status); // only the advice needs it
    bel_free(mode);
}

// Curves come first, since a checkpoint may be equal again after them.
static bel_status *compare_folders(side *a, side *b, bel_bisect_result *result)
{
    result->newest_a = a->steps[a->count - 1];
    result->newest_b = b->steps[b->count - 1];
    compare_curves(a, b, result);
    BEL_TRY(compare_steps(a, b, result));
    if (result->compared == 0 && result->curve.tag == NULL) return refuse_unknown(a, b, result);
    if (result->step < 0 && result->curve.step > result->equal_step) {
        note_newest_mode(a, result);
        note_newest_mode(b, result);
    }
    advise(result);
    return NULL;
}

// --- The verb ------------------------------------------------------------------------------------

static bool has_step(const side *s, int64_t step)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->steps[i] == step) return true;
    return false;
}

// Compares a checkpoint with another one, or with that of its step in a model folder.
static bel_status *compare_checkpoints(side *a, side *b, bel_bisect_result *result)
{
    const side *checkpoint = a->is_checkpoint ? a : b, *folder = a->is_checkpoint ? b : a;
    int64_t step = bel_ckpt_reader_info(checkpoint->reader)->step;
    if (!folder->is_checkpoint && !has_step(folder, step)) {
        bel_str steps = {0};
        put_steps(folder, &steps);
        bel_status *status =
            BEL_ERR(BEL_NOT_FOUND, "%s has no checkpoint of step %lld, which %s is; it has %s",
                    folder->path, (long long)step, checkpoint->path, steps.text);
        bel_str_deinit(&steps);
        return status;
    }
    BEL_TRY(compare_step(a, b, step, result));
    advise(result);
    return NULL;
}

static bel_status *compare(side *a, side *b, bel_bisect_result *result)
{
    *result = (bel_bisect_result){.equal = true,
                                  .folders = !a->is_checkpoint && !b->is_checkpoint,
                                  .step = -1,
                                  .equal_step = -1,
                                  .equal_before = -1};
    return result->folders ? compare_folders(a, b, result) : compare_checkpoints(a, b, result);
}

static void free_result(bel_bisect_result *result)
{
    bel_str_deinit(&result->settings);
    bel_str_deinit(&result->mode);
    bel_str_deinit(&result->next);
    bel_differences_free(&result->differences);
    bel_free(result->curve.tag);
    bel_free(result->unread);
}

bel_status *bel_verb_bisect(const bel_options *options, int *out_exit_code)
{
    size_t count;
    const char *const *paths = bel_options_arguments(options, &count);
    if (count != 2)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "bisect: expected two folders (model_dirs or checkpoints), got %zu", count);
    side a = {0}, b = {0};
    bel_bisect_result result = {0};
    bel_status *status = open_side(paths[0], &a);
    if (status == NULL) status = open_side(paths[1], &b);
    if (status == NULL) status = compare(&a, &b, &result);
    bel_str text = {0};
    if (status == NULL) {
        bel_bisect_write(&result, bel_options_bool(options, "json"), &text);
        status = bel_results_write(text.text);
    }
    if (status == NULL && !result.equal) *out_exit_code = 1;
    bel_str_deinit(&text);
    free_result(&result);
    close_side(&a);
    close_side(&b);
    return status;
}
