// best.json. This file decides nothing: the master chooses the best from
// the recorded evaluations (master/job/best.c) and writes it here for retention and for readers of
// the folder. If best.json cannot be read, retention removes no old checkpoints, so that no best
// one is lost by mistake; the next best replaces the file.
#include "checkpoint/best.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mapping.h"
#include "base/number.h"
#include "base/str.h"

static void write_value(bel_str *out, float value)
{
    char text[BEL_F32_TEXT];
    if (isfinite(value)) {
        bel_str_append(out, text, bel_shortest_f32(value, text));
    } else {
        bel_str_puts(out, "null");
    }
}

bel_status *bel_ckpt_best_write(const char *model_dir, const bel_ckpt_best *best)
{
    bel_str text = {0};
    bel_str_printf(&text, "{\"step\": %lld, \"metric\": ", (long long)best->step);
    bel_json_write_string(&text, best->metric);
    bel_str_puts(&text, ", \"value\": ");
    write_value(&text, best->value);
    bel_str_printf(&text, ", \"goal\": \"%s\", \"evaluation\": ", best->higher ? "max" : "min");
    bel_json_write_string(&text, best->evaluation);
    bel_str_puts(&text, "}\n");
    char *path = bel_path_join(model_dir, BEL_BEST_FILE);
    bel_status *status = bel_file_write_atomic(path, text.text, text.length);
    bel_free(path);
    bel_str_deinit(&text);
    return status;
}

// null stands for a value that was not finite, and is read as NaN.
static bel_status *best_take(const bel_json_value *root, const char *path, bel_ckpt_best *out_best)
{
    const char *metric, *goal, *evaluation;
    double value = NAN;
    bel_ckpt_best best = {0};
    if (!bel_json_i64(root, "step", &best.step) || best.step < 0 ||
        !bel_json_string(root, "metric", &metric) || !bel_json_string(root, "goal", &goal) ||
        !bel_json_string(root, "evaluation", &evaluation)) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected an object with step, metric, value, goal and evaluation",
                       path);
    }
    (void)bel_json_f64(root, "value", &value);
    bel_snprintf(best.metric, sizeof best.metric, "%s", metric);
    bel_snprintf(best.evaluation, sizeof best.evaluation, "%s", evaluation);
    best.value = (float)value;
    best.higher = strcmp(goal, "max") == 0;
    *out_best = best;
    return NULL;
}

// Reads a whole file, for bel_free; NULL: no file. The file is small and always replaced
// atomically.
static bel_status *read_text(const char *path, char **out_text)
{
    bel_mapping bytes;
    *out_text = NULL;
    bel_status *status = bel_mapping_open(path, &bytes);
    if (bel_status_code(status) == BEL_NOT_FOUND) {
        bel_status_ignore(status); // absent
        return NULL;
    }
    if (status != NULL) return status;
    *out_text = bel_xstrndup(bytes.data != NULL ? bytes.data : "", bytes.size);
    bel_mapping_close(&bytes);
    return NULL;
}

bel_status *bel_ckpt_best_read(const char *model_dir, bel_ckpt_best *out_best, bool *out_found)
{
    char *path = bel_path_join(model_dir, BEL_BEST_FILE), *text;
    bel_json *json = NULL;
    bel_status *status = read_text(path, &text);
    *out_found = text != NULL;
    if (text != NULL) status = bel_json_parse(text, strlen(text), path, &json);
    if (text != NULL && status == NULL) status = best_take(bel_json_root(json), path, out_best);
    bel_json_destroy(json);
    bel_free(text);
    bel_free(path);
    return status;
}

static bel_status *remove_file(const char *model_dir, const char *name)
{
    char *path = bel_path_join(model_dir, name);
    int error = unlink(path) == 0 || errno == ENOENT ? 0 : errno;
    bel_status *status = error == 0 ? NULL : bel_file_error(error, "remove", path);
    bel_free(path);
    return status;
}

bel_status *bel_ckpt_best_forget(const char *model_dir)
{
    return remove_file(model_dir, BEL_BEST_FILE);
}
