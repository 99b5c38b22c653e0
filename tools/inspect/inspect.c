// Verb inspect: contents of a checkpoint, or a part of them. --digest is recomputed from the files,
// and --rows reads them. Everything else relies on the manifest, whose checksums are compared at
// opening.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/best.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/table.h"
#include "command/results.h"
#include "command/stores.h"
#include "command/verbs.h"
#include "input/batch/audit.h"
#include "inspect/inspect_model.h"
#include "inspect/rows.h"

// Opens a checkpoint's folder, or the newest checkpoint of a model folder.
static bel_status *open_any(const char *path, bel_ckpt_reader **out_reader)
{
    char *manifest = bel_path_join(path, "manifest.json");
    bool is_checkpoint = bel_file_exists(manifest);
    bel_free(manifest);
    if (is_checkpoint) return bel_ckpt_open(path, out_reader);
    if (!bel_dir_exists(path))
        return BEL_ERR(
            BEL_NOT_FOUND,
            "there is no folder %s (expected: a model's, a checkpoint's, or an ONNX file)", path);
    bel_ckpt_reader *reader;
    BEL_TRY(bel_ckpt_open_latest(path, &reader));
    if (reader == NULL) return BEL_ERR(BEL_NOT_FOUND, "%s holds no checkpoint", path);
    *out_reader = reader;
    return NULL;
}

// --- Contents -----------------------------------------------------------------------------------

// Finds the best checkpoint of a model folder, by its evaluation; step -1: no such checkpoint or
// folder.
static bel_status *find_best(const char *path, bel_ckpt_best *out_best)
{
    bool found;
    BEL_TRY(bel_ckpt_best_read(path, out_best, &found));
    if (!found) out_best->step = -1;
    return NULL;
}

static void put_value(const bel_ckpt_best *best, const char *otherwise, bel_str *out)
{
    char text[BEL_F32_TEXT];
    if (isfinite(best->value)) {
        bel_str_append(out, text, bel_shortest_f32(best->value, text));
    } else {
        bel_str_puts(out, otherwise);
    }
}

static void describe_best_text(const bel_ckpt_best *best, bel_str *out)
{
    if (best->step < 0) return;
    bel_str_printf(out, "best step %lld, %s ", (long long)best->step, best->metric);
    put_value(best, "not finite", out);
    bel_str_printf(out, " (%s)\n", best->evaluation);
}

static void describe_best_json(const bel_ckpt_best *best, bel_str *out)
{
    if (best->step < 0) {
        bel_str_puts(out, ",\"best\":null");
        return;
    }
    bel_str_printf(out, ",\"best\":{\"step\":%lld,\"metric\":", (long long)best->step);
    bel_json_write_string(out, best->metric);
    bel_str_puts(out, ",\"value\":");
    put_value(best, "null", out);
    bel_str_puts(out, ",\"evaluation\":");
    bel_json_write_string(out, best->evaluation);
    bel_str_puts(out, "}");
}

static void describe_text(const bel_ckpt_reader *reader, const bel_ckpt_best *best, bel_str *out)
{
    const bel_ckpt_info *info = bel_ckpt_reader_info(reader);
    char digest[33], bytes[32];
    bel_str_printf(out, "checkpoint %s\nstep %lld\nseed %llu\ngeneration %lld\ndigest %s\n",
                   bel_ckpt_folder(reader), (long long)info->step, (unsigned long long)info->seed,
                   (long long)info->generation,
                   bel_hash128_text(bel_ckpt_reader_digest(reader), digest));
    if (info->base.step > 0)
        bel_str_printf(out, "base step %lld, digest %s\n", (long long)info->base.step,
                       bel_hash128_text(info->base.digest, digest));
    describe_best_text(best, out);
    bel_str_puts(out, "\nsettings\n");
    for (int i = 0; i < info->setting_count; i++)
        bel_str_printf(out, "  %-24s %s\n", info->setting_names[i], info->setting_values[i]);
    bel_str_puts(out, "\ntensors\n");
    uint64_t total = 0;
    for (int i = 0; i < bel_ckpt_tensor_count(reader); i++) {
        const char *name;
        bel_tensor tensor;
        char shape[BEL_SHAPE_TEXT];
        bel_ckpt_tensor(reader, i, &name, &tensor.dtype, &tensor.shape);
        uint64_t size = bel_tensor_bytes(&tensor);
        total += size;
        bel_str_printf(out, "  %-32s %-5s %-16s %s\n", name, bel_dtype_name(tensor.dtype),
                       bel_shape_text(&tensor.shape, shape), bel_bytes_text(size, bytes));
    }
    bel_str_printf(out, "  %d tensors, %s\n", bel_ckpt_tensor_count(reader),
                   bel_bytes_text(total, bytes));
    if (bel_ckpt_table_count(reader) > 0) bel_str_puts(out, "\ntables\n");
    for (int i = 0; i < bel_ckpt_table_count(reader); i++) {
        int64_t rows;
        bel_ckpt_table table = bel_ckpt_table_at(reader, i, &rows);
        bel_str_printf(out, "  %-32s %lld rows of %d", table.name, (long long)rows, table.width);
        for (int c = 0; c < table.column_count; c++)
            bel_str_printf(out, "%s%s", c == 0 ? ": " : ", ", table.columns[c]);
        if (info->base.step > 0) {
            int64_t changed, removed;
            bel_ckpt_table_change(reader, i, &changed, &removed);
            bel_str_printf(out, "; %lld rows and %lld removed keys here", (long long)changed,
                           (long long)removed);
        }
        bel_str_puts(out, "\n");
    }
}

static void describe_tensor_json(const bel_ckpt_reader *reader, int index, bel_str *out)
{
    const char *name;
    bel_tensor tensor;
    bel_ckpt_tensor(reader, index, &name, &tensor.dtype, &tensor.shape);
    bel_str_puts(out, "{\"name\":");
    bel_json_write_string(out, name);
    bel_str_printf(out, ",\"dtype\":\"%s\",\"shape\":[", bel_dtype_name(tensor.dtype));
    for (int d = 0; d < tensor.shape.rank; d++)
        bel_str_printf(out, "%s%lld", d > 0 ? "," : "", (long long)tensor.shape.dims[d]);
    bel_str_printf(out, "],\"bytes\":%zu}", bel_tensor_bytes(&tensor));
}

static void describe_table_json(const bel_ckpt_reader *reader, int index, bel_str *out)
{
    int64_t rows;
    bel_ckpt_table table = bel_ckpt_table_at(reader, index, &rows);
    bel_str_puts(out, index > 0 ? ",{\"name\":" : "{\"name\":");
    bel_json_write_string(out, table.name);
    bel_str_printf(out, ",\"rows\":%lld,\"width\":%d,\"columns\":[", (long long)rows, table.width);
    for (int c = 0; c < table.column_count; c++) {
        if (c > 0) bel_str_puts(out, ",");
        bel_json_write_string(out, table.columns[c]);
    }
    bel_str_puts(out, "]");
    if (bel_ckpt_reader_info(reader)->base.step > 0) {
        int64_t changed, removed;
        bel_ckpt_table_change(reader, index, &changed, &removed);
        bel_str_printf(out, ",\"changed_rows\":%lld,\"removed_keys\":%lld", (long long)changed,
                       (long long)removed);
    }
    bel_str_puts(out, "}");
}

static void describe_json(const bel_ckpt_reader *reader, const bel_ckpt_best *best, bel_str *out)
{
    const bel_ckpt_info *info = bel_ckpt_reader_info(reader);
    char digest[33];
    bel_str_puts(out, "{\"checkpoint\":");
    bel_json_write_string(out, bel_ckpt_folder(reader));
    bel_str_printf(out, ",\"step\":%lld,\"seed\":%llu,\"generation\":%lld,\"digest\":\"%s\"",
                   (long long)info->step, (unsigned long long)info->seed,
                   (long long)info->generation,
                   bel_hash128_text(bel_ckpt_reader_digest(reader), digest));
    if (info->base.step > 0)
        bel_str_printf(out, ",\"base\":{\"step\":%lld,\"digest\":\"%s\"}",
                       (long long)info->base.step, bel_hash128_text(info->base.digest, digest));
    describe_best_json(best, out);
    bel_str_puts(out, ",\"settings\":{");
    for (int i = 0; i < info->setting_count; i++) {
        if (i > 0) bel_str_puts(out, ",");
        bel_json_write_string(out, info->setting_names[i]);
        bel_str_puts(out, ":");
        bel_json_write_string(out, info->setting_values[i]);
    }
    bel_str_puts(out, "},\"tensors\":[");
    for (int i = 0; i < bel_ckpt_tensor_count(reader); i++) {
        if (i > 0) bel_str_puts(out, ",");
        describe_tensor_json(reader, i, out);
    }
    bel_str_puts(out, "],\"tables\":[");
    for (int i = 0; i < bel_ckpt_table_count(reader); i++)
        describe_table_json(reader, i, out);
    bel_str_puts(out, "]}\n");
}

static bel_status *print_description(const bel_ckpt_reader *reader, const char *path, bool json)
{
    bel_ckpt_best best;
    BEL_TRY(find_best(path, &best));
    bel_str text = {0};
    (json ? describe_json : describe_text)(reader, &best, &text);
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    return status;
}

static bel_status *print_digest(bel_ckpt_reader *reader, bool json)
{
    char digest[33];
    BEL_TRY(bel_ckpt_verify(reader));
    bel_hash128_text(bel_ckpt_reader_digest(reader), digest);
    char *line = bel_strf(json ? "{\"digest\":\"%s\"}\n" : "%s\n", digest);
    bel_status *status = bel_results_write(line);
    bel_free(line);
    return status;
}

// --- Audit ---------------------------------------------------------------------------------------

static void describe_audit(const bel_audit_result *result, bool json, bel_str *out)
{
    if (json) {
        bel_str_printf(out,
                       "{\"blocks\":%lld,\"not_counted\":%lld,\"epoch_records\":%lld,\"epochs\":[",
                       (long long)result->blocks, (long long)result->not_counted,
                       (long long)result->epoch_records);
    }
    for (int64_t i = 0; i < result->epoch_count; i++) {
        const bel_audit_epoch *epoch = &result->epochs[i];
        if (json) {
            bel_str_printf(out, "%s{\"epoch\":%lld,\"records\":%lld,\"whole\":%s}",
                           i > 0 ? "," : "", (long long)epoch->epoch, (long long)epoch->records,
                           epoch->whole ? "true" : "false");
        } else {
            bel_str_printf(out, "epoch %lld: %lld records, each once%s\n", (long long)epoch->epoch,
                           (long long)epoch->records, epoch->whole ? "" : "; not all of it");
        }
    }
    if (json) {
        bel_str_puts(out, "]}\n");
    } else {
        bel_str_printf(out, "batches %lld\nrepeated_batches %lld\n", (long long)result->blocks,
                       (long long)result->not_counted);
    }
}

// Parses the 16 digits of a fingerprint.
static bool parse_hex(const char *text, uint64_t *out_number)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t number = 0;
    for (int i = 0; i < 16; i++) {
        const char *digit = text[i] == '\0' ? NULL : strchr(digits, text[i]);
        if (digit == NULL) return false;
        number = number << 4 | (uint64_t)(digit - digits);
    }
    *out_number = number;
    return text[16] == '\0';
}

// Notes are in the model folder, even if `path` is one checkpoint in it.
static bel_status *print_audit(const bel_ckpt_reader *reader, bool json)
{
    const bel_ckpt_info *info = bel_ckpt_reader_info(reader);
    const char *fingerprint = bel_ckpt_setting(reader, "input");
    char *audit = bel_strf("%s/../" BEL_AUDIT_FOLDER, bel_ckpt_folder(reader));
    bel_audit_scope scope = {
        .step = info->step, .segments = info->segments, .segment_count = info->segment_count};
    bel_audit_result result = {0};
    bel_status *status = NULL;
    if (fingerprint == NULL || !parse_hex(fingerprint, &scope.fingerprint)) {
        status = BEL_ERR(BEL_DATA_LOSS, "%s does not say what data it was trained on",
                         bel_ckpt_folder(reader));
    }
    if (status == NULL) status = bel_audit_check(audit, &scope, &result);
    bel_free(audit);
    bel_str text = {0};
    if (status == NULL) {
        describe_audit(&result, json, &text);
        status = bel_results_write(text.text);
    }
    bel_str_deinit(&text);
    bel_audit_result_deinit(&result);
    return status;
}

static bel_status *inspect_checkpoint(const bel_options *options, const char *path)
{
    bool json = bel_options_bool(options, "json");
    bel_ckpt_reader *reader;
    bel_status *status;
    BEL_TRY(open_any(path, &reader));
    if (bel_options_bool(options, "audit")) {
        status = print_audit(reader, json);
    } else if (bel_options_bool(options, "digest")) {
        status = print_digest(reader, json);
    } else if (bel_options_is_given(options, "rows")) {
        size_t name_count;
        const char *const *names = bel_options_list(options, "names", &name_count);
        status =
            bel_inspect_rows(reader, bel_options_text(options, "rows"), names, name_count, json);
    } else {
        status = print_description(reader, path, json);
    }
    bel_ckpt_close(reader);
    return status;
}

// Number of flags that each print another part of a checkpoint.
static int count_parts(const bel_options *options)
{
    return bel_options_bool(options, "audit") + bel_options_bool(options, "digest") +
           bel_options_is_given(options, "rows");
}

static bel_status *inspect_path(const bel_options *options, const char *path, int *out_exit_code)
{
    if (!bel_is_model(path)) return inspect_checkpoint(options, path);
    if (count_parts(options) == 0)
        return bel_inspect_model(path, bel_options_bool(options, "json"), out_exit_code);
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "inspect: %s is a model: --audit, --digest and --rows are for checkpoints",
                   path);
}

bel_status *bel_verb_inspect(const bel_options *options, int *out_exit_code)
{
    size_t count;
    const char *const *paths = bel_options_arguments(options, &count);
    if (count != 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "inspect: expected one folder (a model_dir or a checkpoint) or ONNX model, "
                       "got %zu",
                       count);
    }
    static const bel_option_meaning none[] = {{NULL, NULL}};
    BEL_TRY(bel_options_check_read(options, none));
    if (count_parts(options) > 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "inspect: expected one of --audit, --digest and --rows, got %d",
                       count_parts(options));
    }
    char *path;
    BEL_TRY(bel_store_path_to_read(paths[0], bel_options_bool(options, "audit"), &path));
    bel_status *status = inspect_path(options, path, out_exit_code);
    bel_free(path);
    return status;
}
