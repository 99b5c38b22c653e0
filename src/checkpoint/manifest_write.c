// Writer of the manifest. Version 2 is written only for checkpoints with tables, and version 3 only
// for deltas, so that older versions of Belfry still read all others.
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "checkpoint/manifest.h"

static void write_segments(bel_str *out, const bel_ckpt_info *info)
{
    bel_str_puts(out, "  \"segments\": [");
    for (int i = 0; i < info->segment_count; i++) {
        const bel_input_segment *segment = &info->segments[i];
        bel_str_printf(out, "%s\n    {\"first_step\": %lld, \"first_block\": %lld, ",
                       i > 0 ? "," : "", (long long)segment->first_step,
                       (long long)segment->first_block);
        bel_str_printf(out, "\"replica_count\": %lld", (long long)segment->replica_count);
        if (segment->batch_size > 0) {
            bel_str_printf(out, ", \"batch_size\": %lld, \"origin\": %lld",
                           (long long)segment->batch_size, (long long)segment->origin);
        }
        bel_str_puts(out, "}");
    }
    bel_str_puts(out, "\n  ],\n");
}

static void write_settings(bel_str *out, const bel_ckpt_info *info)
{
    bel_str_puts(out, "  \"settings\": {");
    for (int i = 0; i < info->setting_count; i++) {
        bel_str_puts(out, i > 0 ? ",\n    " : "\n    ");
        bel_json_write_exact(out, info->setting_names[i]);
        bel_str_puts(out, ": ");
        bel_json_write_exact(out, info->setting_values[i]);
    }
    bel_str_puts(out, "\n  },\n");
}

static void write_files(bel_str *out, const bel_manifest *manifest)
{
    bel_str_puts(out, "  \"files\": [");
    for (int i = 0; i < manifest->file_count; i++) {
        const bel_manifest_file *file = &manifest->files[i];
        bel_str_puts(out, i > 0 ? ",\n    {\"name\": " : "\n    {\"name\": ");
        bel_json_write_exact(out, file->name);
        bel_str_printf(out, ", \"size\": %llu, \"crc32c\": \"%08x\"}",
                       (unsigned long long)file->size_bytes, file->crc32c);
    }
    bel_str_puts(out, "\n  ],\n");
}

static void write_tensor(bel_str *out, const bel_manifest_tensor *tensor)
{
    bel_str_puts(out, "{\"name\": ");
    bel_json_write_exact(out, tensor->name);
    bel_str_printf(out, ", \"dtype\": \"%s\", \"shape\": [", bel_dtype_name(tensor->dtype));
    for (int32_t i = 0; i < tensor->shape.rank; i++)
        bel_str_printf(out, "%s%lld", i > 0 ? ", " : "", (long long)tensor->shape.dims[i]);
    bel_str_puts(out, "], \"pieces\": [");
    for (int i = 0; i < tensor->piece_count; i++) {
        const bel_manifest_piece *piece = &tensor->pieces[i];
        bel_str_printf(out, "%s[%d, %lld, %lld]", i > 0 ? ", " : "", piece->file_index,
                       (long long)piece->first, (long long)piece->count);
    }
    bel_str_puts(out, "]}");
}

static void write_counts(bel_str *out, const int64_t *counts, int file_count)
{
    for (int i = 0; i < file_count; i++)
        bel_str_printf(out, "%s%lld", i > 0 ? ", " : "[", (long long)counts[i]);
    bel_str_puts(out, file_count > 0 ? "]" : "[]");
}

static void write_table(bel_str *out, const bel_manifest_table *table, int file_count)
{
    bel_str_puts(out, "{\"name\": ");
    bel_json_write_exact(out, table->table.name);
    bel_str_printf(out, ", \"width\": %d, \"columns\": [", table->table.width);
    for (int i = 0; i < table->table.column_count; i++) {
        if (i > 0) bel_str_puts(out, ", ");
        bel_json_write_exact(out, table->table.columns[i]);
    }
    bel_str_puts(out, "], \"rows\": ");
    write_counts(out, table->rows, file_count);
    if (table->removed != NULL) {
        bel_str_puts(out, ", \"removed\": ");
        write_counts(out, table->removed, file_count);
        bel_str_printf(out, ", \"all\": %lld", (long long)table->all);
    }
    bel_str_puts(out, "}");
}

// Writes nothing without tables: such checkpoints keep the text of version 1.
static void write_tables(bel_str *out, const bel_manifest *manifest)
{
    if (manifest->table_count == 0) return;
    bel_str_puts(out, "  \"tables\": [");
    for (int i = 0; i < manifest->table_count; i++) {
        bel_str_puts(out, i > 0 ? ",\n    " : "\n    ");
        write_table(out, &manifest->tables[i], manifest->file_count);
    }
    bel_str_puts(out, "\n  ],\n");
}

static int version_of(const bel_manifest *manifest)
{
    if (manifest->info.base.step > 0) return BEL_MANIFEST_VERSION;
    return manifest->table_count > 0 ? BEL_MANIFEST_TABLE_VERSION : BEL_MANIFEST_PLAIN_VERSION;
}

void bel_manifest_write(const bel_manifest *manifest, bel_str *out)
{
    const bel_ckpt_info *info = &manifest->info;
    char digest_text[33];
    size_t start = out->length;
    bel_str_printf(out, "{\n  \"format\": \"%s\",\n  \"format_version\": %d,\n",
                   BEL_MANIFEST_FORMAT, version_of(manifest));
    bel_str_printf(out, "  \"step\": %lld,\n  \"generation\": %lld,\n  \"seed\": \"%llu\",\n",
                   (long long)info->step, (long long)info->generation,
                   (unsigned long long)info->seed);
    bel_str_printf(out, "  \"digest\": \"%s\",\n", bel_hash128_text(manifest->digest, digest_text));
    if (info->base.step > 0) {
        bel_str_printf(out, "  \"base\": {\"step\": %lld, \"digest\": \"%s\"},\n",
                       (long long)info->base.step,
                       bel_hash128_text(info->base.digest, digest_text));
    }
    write_segments(out, info);
    write_settings(out, info);
    write_files(out, manifest);
    bel_str_puts(out, "  \"tensors\": [");
    for (int i = 0; i < manifest->tensor_count; i++) {
        bel_str_puts(out, i > 0 ? ",\n    " : "\n    ");
        write_tensor(out, &manifest->tensors[i]);
    }
    bel_str_puts(out, "\n  ],\n");
    write_tables(out, manifest);
    uint32_t crc = bel_crc32c(0, out->text + start, out->length - start);
    bel_str_printf(out, "%s%08x%s", BEL_MANIFEST_SEAL_HEAD, crc, BEL_MANIFEST_SEAL_TAIL);
}
