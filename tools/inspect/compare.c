// Two checkpoints are equal if their digests are. Only if they differ are the tensors read, block
// by block, to find the first that differs, in the order of their names. A difference only in
// tables appears as that of the digests. Runs are compared step by step, from the first on: after
// one step that differs, all later ones do.
#include "inspect/compare.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/files.h"
#include "checkpoint/folder.h"
#include "checkpoint/setting_names.h"

// --- Tensors -------------------------------------------------------------------------------------

enum { RUN_BYTES = 1 << 20 };

// Returns the index of the first element that differs, or -1.
static int64_t first_difference(const char *a, const char *b, int64_t count, size_t element_size)
{
    for (int64_t i = 0; i < count; i++)
        if (memcmp(a + (size_t)i * element_size, b + (size_t)i * element_size, element_size) != 0)
            return i;
    return -1;
}

// Compares a tensor that has the same type and shape in both, run by run.
static bel_status *compare_values(const bel_ckpt_reader *a, const bel_ckpt_reader *b,
                                  const char *name, const bel_tensor *tensor, int64_t *out_first)
{
    char *run_a = bel_xmalloc(RUN_BYTES), *run_b = bel_xmalloc(RUN_BYTES);
    size_t size = bel_dtype_size(tensor->dtype);
    int64_t total = bel_shape_elements(&tensor->shape), step = RUN_BYTES / (int64_t)size;
    bel_status *status = NULL;
    *out_first = -1;
    for (int64_t at = 0; at < total && status == NULL && *out_first < 0; at += step) {
        int64_t count = total - at < step ? total - at : step;
        status = bel_ckpt_read(a, name, tensor->dtype, &tensor->shape, at, count, run_a);
        if (status == NULL) {
            status = bel_ckpt_read(b, name, tensor->dtype, &tensor->shape, at, count, run_b);
        }
        int64_t place = status == NULL ? first_difference(run_a, run_b, count, size) : -1;
        if (place >= 0) *out_first = at + place;
    }
    bel_free(run_a);
    bel_free(run_b);
    return status;
}

// Appends ": X and Y", the two values of an element.
static bel_status *write_elements(const bel_ckpt_reader *a, const bel_ckpt_reader *b,
                                  const char *name, const bel_shape *shape, int64_t element,
                                  bel_str *out)
{
    float x, y;
    BEL_TRY(bel_ckpt_read(a, name, BEL_DTYPE_F32, shape, element, 1, &x));
    BEL_TRY(bel_ckpt_read(b, name, BEL_DTYPE_F32, shape, element, 1, &y));
    bel_str_printf(out, ": %.9g and %.9g", (double)x, (double)y);
    return NULL;
}

// Appends how tensor `index` of `a` differs from that of `b`; nothing if they are equal.
static bel_status *compare_tensor(const bel_ckpt_reader *a, const bel_ckpt_reader *b, int index,
                                  bel_str *out)
{
    const char *name, *other_name;
    bel_tensor tensor, other;
    char text[BEL_SHAPE_TEXT], other_text[BEL_SHAPE_TEXT];
    bel_ckpt_tensor(a, index, &name, &tensor.dtype, &tensor.shape);
    int found = bel_ckpt_find(b, name);
    if (found < 0) {
        bel_str_printf(out, "%s is not in %s", name, bel_ckpt_folder(b));
        return NULL;
    }
    bel_ckpt_tensor(b, found, &other_name, &other.dtype, &other.shape);
    if (tensor.dtype != other.dtype || !bel_shape_equal(&tensor.shape, &other.shape)) {
        bel_str_printf(out, "%s is %s %s and %s %s", name, bel_dtype_name(tensor.dtype),
                       bel_shape_text(&tensor.shape, text), bel_dtype_name(other.dtype),
                       bel_shape_text(&other.shape, other_text));
        return NULL;
    }
    int64_t first;
    BEL_TRY(compare_values(a, b, name, &tensor, &first));
    if (first < 0) return NULL;
    bel_str_printf(out, "%s differs at element %lld", name, (long long)first);
    return tensor.dtype == BEL_DTYPE_F32 ? write_elements(a, b, name, &tensor.shape, first, out)
                                         : NULL;
}

static bel_status *find_difference(const bel_ckpt_reader *a, const bel_ckpt_reader *b, bel_str *out)
{
    for (int i = 0; i < bel_ckpt_tensor_count(a) && out->length == 0; i++)
        BEL_TRY(compare_tensor(a, b, i, out));
    for (int i = 0; i < bel_ckpt_tensor_count(b) && out->length == 0; i++) {
        const char *name;
        bel_tensor tensor;
        bel_ckpt_tensor(b, i, &name, &tensor.dtype, &tensor.shape);
        if (bel_ckpt_find(a, name) < 0) {
            bel_str_printf(out, "%s is not in %s", name, bel_ckpt_folder(a));
        }
    }
    return NULL;
}

// --- Runs ----------------------------------------------------------------------------------------

static bool same_digest(const bel_ckpt_reader *a, const bel_ckpt_reader *b)
{
    bel_hash128 x = bel_ckpt_reader_digest(a), y = bel_ckpt_reader_digest(b);
    return x.low == y.low && x.high == y.high;
}

static bool is_model_folder(const char *path)
{
    char *manifest = bel_path_join(path, BEL_CKPT_MANIFEST);
    bool is_checkpoint = bel_file_exists(manifest);
    bel_free(manifest);
    return !is_checkpoint;
}

static bel_status *open_step(const char *model_dir, int64_t step, bel_ckpt_reader **out_reader)
{
    char *folder = bel_ckpt_find_folder(model_dir, step);
    bel_status *status = bel_ckpt_open_lazily(folder, out_reader);
    bel_free(folder);
    return status;
}

// Whether a parameter of the model function has the text of another setting of its name.
static bool is_said(const bel_ckpt_reader *reader, const char *name)
{
    static const char prefix[] = "param.";
    size_t length = sizeof prefix - 1;
    return strncmp(name, prefix, length) == 0 && bel_ckpt_setting(reader, name + length) != NULL;
}

// Settings that differ are mostly the reason.
static void compare_settings(const bel_ckpt_reader *a, const bel_ckpt_reader *b,
                             bel_compare_result *result)
{
    const bel_ckpt_info *x = bel_ckpt_reader_info(a), *y = bel_ckpt_reader_info(b);
    for (int i = 0; i < x->setting_count; i++) {
        const char *was = x->setting_values[i], *is = bel_ckpt_setting(b, x->setting_names[i]);
        if ((is == NULL || strcmp(was, is) != 0) && !is_said(a, x->setting_names[i]))
            bel_setting_note_difference(&result->settings, x->setting_names[i], was, is);
    }
    for (int i = 0; i < y->setting_count; i++)
        if (bel_ckpt_setting(a, y->setting_names[i]) == NULL && !is_said(b, y->setting_names[i]))
            bel_setting_note_difference(&result->settings, y->setting_names[i], NULL,
                                        y->setting_values[i]);
}

static bel_status *compare_checkpoints(const bel_ckpt_reader *a, const bel_ckpt_reader *b,
                                       bel_compare_result *result)
{
    compare_settings(a, b, result);
    return find_difference(a, b, &result->difference);
}

// Compares one step of both runs; *out_differs: then the difference is in the result.
static bel_status *compare_step(const char *path_a, const char *path_b, int64_t step,
                                bel_compare_result *result, bool *out_differs)
{
    bel_ckpt_reader *a, *b;
    BEL_TRY(open_step(path_a, step, &a));
    bel_status *status = open_step(path_b, step, &b);
    if (status == NULL) {
        *out_differs = !same_digest(a, b);
        if (*out_differs) status = compare_checkpoints(a, b, result);
        bel_ckpt_close(b);
    }
    bel_ckpt_close(a);
    return status;
}

// Finds the first step that both runs have saved and at which they differ.
static bel_status *compare_steps(const char *path_a, const char *path_b, const int64_t *steps_a,
                                 size_t count_a, const int64_t *steps_b, size_t count_b,
                                 bel_compare_result *result)
{
    for (size_t i = 0, k = 0; i < count_a && k < count_b;) {
        if (steps_a[i] != steps_b[k]) {
            steps_a[i] < steps_b[k] ? i++ : k++;
            continue;
        }
        bool differs = false;
        bel_status *status = compare_step(path_a, path_b, steps_a[i], result, &differs);
        if (bel_status_code(status) == BEL_NOT_FOUND) { // a running job has removed it
            bel_status_ignore(status);
            i++, k++;
            continue;
        }
        BEL_TRY(status);
        if (differs) {
            result->step = steps_a[i];
            return NULL;
        }
        result->equal_step = steps_a[i++];
        k++;
    }
    if (count_a == 0 || count_b == 0) return NULL; // removed since they were opened
    bel_str_printf(&result->difference, "%sthe newest checkpoints are of steps %lld and %lld",
                   result->equal_step < 0 ? "they have no step in common: " : "",
                   (long long)steps_a[count_a - 1], (long long)steps_b[count_b - 1]);
    return NULL;
}

static bel_status *compare_runs(const char *path_a, const char *path_b, bel_compare_result *result)
{
    int64_t *steps_a = NULL, *steps_b = NULL;
    size_t count_a, count_b;
    bel_status *status = bel_ckpt_list(path_a, &steps_a, &count_a);
    if (status == NULL) status = bel_ckpt_list(path_b, &steps_b, &count_b);
    if (status == NULL)
        status = compare_steps(path_a, path_b, steps_a, count_a, steps_b, count_b, result);
    bel_free(steps_a);
    bel_free(steps_b);
    return status;
}

bel_status *bel_compare(const bel_ckpt_reader *a, const char *path_a, const bel_ckpt_reader *b,
                        const char *path_b, bel_compare_result *out_result)
{
    *out_result = (bel_compare_result){.equal = same_digest(a, b), .step = -1, .equal_step = -1};
    if (out_result->equal) return NULL;
    bool runs = is_model_folder(path_a) && is_model_folder(path_b);
    BEL_TRY(runs ? compare_runs(path_a, path_b, out_result)
                 : compare_checkpoints(a, b, out_result));
    if (out_result->difference.length == 0)
        bel_str_puts(&out_result->difference, "the digests differ");
    return NULL;
}

void bel_compare_free(bel_compare_result *result)
{
    bel_str_deinit(&result->difference);
    bel_str_deinit(&result->settings);
}

static void put_json_text(const char *name, const bel_str *text, bel_str *out)
{
    bel_str_printf(out, ",\"%s\":", name);
    text->length == 0 ? bel_str_puts(out, "null") : bel_json_write_string(out, text->text);
}

static void put_json_step(const char *name, int64_t step, bel_str *out)
{
    bel_str_printf(out, ",\"%s\":", name);
    step < 0 ? bel_str_puts(out, "null") : bel_str_printf(out, "%lld", (long long)step);
}

void bel_compare_write(const bel_compare_result *result, bool json, bel_str *out)
{
    if (json) {
        bel_str_printf(out, "{\"equal\":%s", result->equal ? "true" : "false");
        put_json_text("difference", &result->difference, out);
        put_json_step("step", result->step, out);
        put_json_step("equal_step", result->equal_step, out);
        put_json_text("settings", &result->settings, out);
        bel_str_puts(out, "}\n");
        return;
    }
    if (result->equal) bel_str_puts(out, "equal\n");
    if (result->equal) return;
    if (result->step >= 0) bel_str_printf(out, "step %lld: ", (long long)result->step);
    bel_str_printf(out, "%s\n", result->difference.text);
    if (result->equal_step >= 0)
        bel_str_printf(out, "equal up to step %lld\n", (long long)result->equal_step);
    if (result->settings.length > 0) bel_str_printf(out, "settings: %s\n", result->settings.text);
}
