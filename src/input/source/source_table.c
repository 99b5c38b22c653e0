// Source of CSV rows that are read as a description of columns says (belfry/columns.h). Each file's
// columns are found by name in its header, so files may have them in any order, among others. Rows
// are read in blocks (source_table_block.c).
//
// Opening reads every cell once, on all cores, so that no error shows up in the middle of a
// training. Rows without a label are left out then, and counted in the log. Opening also counts
// values of categories that training did not have, and reports columns where they are the majority.
// It skips this check if the description was made of the same rows in this process. If bad rows are
// left out as they are read, opening checks only the labels.
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "input/source/table_source.h"
#include "input/table/holdout.h"

static bel_status *read_known(const bel_table_source *source, const int64_t *numbers, int64_t count,
                              void *const *places)
{
    const bel_csv_label none = {.column = -1};
    const bel_columns_block rows = bel_table_fields_block(&source->at, places);
    bel_table_block block = {.known = false};
    bel_table_scratch s;
    bel_status *status = NULL;
    bel_table_scratch_init(source, count, &s);
    for (int64_t at = 0; at < count && status == NULL; at += block.count) {
        for (block.count = 0; block.count < BEL_COLUMNS_BLOCK && at + block.count < count;) {
            const int i = block.count++;
            block.files[i] = bel_csv_set_find(&source->set, numbers[at + i], &block.rows[i]);
            if (source->bad == NULL) continue;
            status = bel_csv_file_check_row(block.files[i], block.rows[i], &none);
            if (status != NULL) break;
        }
        if (status != NULL) break;
        const bel_columns_block to = bel_columns_block_from(source->columns, &rows, at);
        bel_table_source_read_block(source, &block, &to, &s);
        for (; block.wrong != 0; block.wrong &= block.wrong - 1) {
            bel_status *error = block.errors[__builtin_ctz(block.wrong)];
            if (status != NULL) bel_status_ignore(error); // the first one is reported
            if (status == NULL) status = error;
        }
    }
    bel_table_scratch_deinit(&s);
    return status;
}

// Reads rows up to the first error. places[f] receives the first row of field f, and the others
// follow it. Rows of a file that grows are read in order.
static bel_status *table_read_rows(const bel_source *base, const int64_t *numbers, int64_t count,
                                   void *const *places)
{
    const bel_table_source *source = (const bel_table_source *)base;
    if (count == 0) return NULL;
    BEL_TRY(bel_csv_set_enter(&source->set, numbers[count - 1]));
    bel_status *status = read_known(source, numbers, count, places);
    bel_csv_set_leave(&source->set);
    return status;
}

static bel_status *table_look(const bel_source *base, int64_t wanted, int64_t *out_records)
{
    return bel_csv_set_look(&((const bel_table_source *)base)->set, wanted, out_records);
}

static bel_status *table_mark(const bel_source *base, int64_t records, bel_str *out_text)
{
    return bel_csv_set_mark(&((const bel_table_source *)base)->set, records, out_text);
}

static bel_status *table_begin(const bel_source *base, int64_t records, const char *mark)
{
    return bel_csv_set_begin(&((const bel_table_source *)base)->set, records, mark);
}

static void table_pass(const bel_source *base, int64_t records)
{
    bel_csv_set_pass(&((const bel_table_source *)base)->set, records);
}

static void table_unfinished(const bel_source *base, bel_str *out_text)
{
    bel_csv_set_unfinished(&((const bel_table_source *)base)->set, out_text);
}

static bel_status *table_read(const bel_source *base, int64_t number, const bel_sink *sink)
{
    void *places[BEL_TABLE_MOST_FIELDS] = {NULL};
    for (int i = 0; i < base->field_count; i++)
        places[i] = bel_sink_place(sink, base, i, 0);
    return table_read_rows(base, &number, 1, places);
}

static void table_ahead(const bel_source *base, int64_t number, int step)
{
    bel_csv_set_ahead(&((const bel_table_source *)base)->set, number, step);
}

static bel_status *table_check(const bel_source *base, int64_t block)
{
    return bel_csv_set_check(&((const bel_table_source *)base)->set, block);
}

static void table_origin(const bel_source *base, int64_t number, bel_str *out_text)
{
    const bel_table_source *source = (const bel_table_source *)base;
    bel_csv_set_origin(&source->set, number, out_text);
}

static const char *table_file(const bel_source *base, int64_t number)
{
    const bel_table_source *source = (const bel_table_source *)base;
    const char *at;
    const bel_csv_set *set = &source->set;
    if (set->growth != NULL) return bel_csv_set_followed(set);
    return bel_csv_set_find(&source->set, number, &at)->path;
}

// The fingerprint covers the description's whole text. Any change, even of a note, makes another
// description.
static void table_describe(const bel_source *base, bel_str *out_text)
{
    const bel_table_source *source = (const bel_table_source *)base;
    bel_str_printf(out_text, "columns=%016llx label=%d",
                   (unsigned long long)source->columns->fingerprint, source->labeled);
    if (source->set.growth != NULL) bel_str_puts(out_text, " follow");
    bel_holdout_describe(&source->holdout, out_text);
}

static void table_destroy(bel_source *base)
{
    bel_table_source *source = (bel_table_source *)base;
    bel_csv_set_close(&source->set);
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind table_kind = {
    .name = "table",
    .check = table_check,
    .read = table_read,
    .read_rows = table_read_rows,
    .ahead = table_ahead,
    .origin = table_origin,
    .file = table_file,
    .describe = table_describe,
    .destroy = table_destroy,
};

static const bel_source_kind followed_kind = {
    .name = "table",
    .check = table_check,
    .look = table_look,
    .begin = table_begin,
    .pass = table_pass,
    .mark = table_mark,
    .unfinished = table_unfinished,
    .read = table_read,
    .read_rows = table_read_rows,
    .origin = table_origin,
    .file = table_file,
    .describe = table_describe,
    .destroy = table_destroy,
};

// --- Columns by name -----------------------------------------------------------------------------

static bool is_read(const bel_table_source *source, const bel_column *column)
{
    bool beside = column->kind == BEL_COLUMN_LABEL || column->kind == BEL_COLUMN_WEIGHT;
    return beside ? source->labeled : bel_column_is_feature(column);
}

static bel_status *missing_columns(const bel_table_source *source, const bel_csv_file *file,
                                   const bool *found, const char *const *names)
{
    bel_str missing = {0}, others = {0};
    for (int c = 0; c < source->columns->count; c++) {
        const bel_column *column = &source->columns->items[c];
        if (found[c] || !is_read(source, column)) continue;
        bel_str_printf(&missing, "%s\"%s\"", missing.length > 0 ? ", " : "", column->name);
    }
    if (missing.length == 0) return NULL;
    for (int i = 0; i < file->column_count; i++)
        if (bel_columns_find(source->columns, names[i]) < 0)
            bel_str_printf(&others, "%s\"%s\"", others.length > 0 ? ", " : "", names[i]);
    bel_status *status =
        BEL_ERR(BEL_INVALID_ARGUMENT, "%s: no column %s, with which the model was trained%s%s%s",
                file->path, missing.text,
                others.length > 0 ? "; columns here that training did not have: " : "",
                others.length > 0 ? others.text : "",
                bel_csv_table_delimiter_hint(names, file->column_count, file->delimiter));
    bel_str_deinit(&missing);
    bel_str_deinit(&others);
    return status;
}

// Finds a file's columns. The first of two columns of one name counts, as when the description was
// made.
static bel_status *place_columns(bel_table_source *source, int number)
{
    bel_csv_file *file = &source->set.files[number];
    const bel_columns *columns = source->columns;
    const char *const *names;
    if (file->of_objects && columns->decimal == ',')
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: its numbers have decimal points, and those of the training commas",
                       file->path);
    BEL_TRY(bel_csv_table_names(file, columns->header, source->arena, &names));
    size_t bytes = (size_t)file->column_count * sizeof(int);
    int *places = source->places[number] = bel_arena_alloc(source->arena, bytes);
    bool *found = bel_arena_alloc(source->arena, (size_t)columns->count * sizeof *found);
    bel_str others = {0};
    source->label_fields[number] = -1;
    for (int i = 0; i < file->column_count; i++) {
        int c = bel_columns_find(columns, names[i]);
        bool reads = c >= 0 && !found[c] && is_read(source, &columns->items[c]);
        places[i] = reads ? c : -1;
        if (c >= 0 && !found[c] && c == columns->label) source->label_fields[number] = i;
        if (c >= 0) found[c] = true;
        if (c < 0) bel_str_printf(&others, "%s\"%s\"", others.length > 0 ? ", " : "", names[i]);
    }
    if (others.length > 0) {
        bel_log_write(BEL_LOG_INFO, "%s: left out, as the model was not trained with them: %s",
                      file->path, others.text);
    }
    bel_str_deinit(&others);
    return missing_columns(source, file, found, names);
}

// --- Opening -------------------------------------------------------------------------------------

// Finds files with the same columns at the same places. Their rows are read in one run.
static void find_layouts(bel_table_source *source)
{
    const bel_csv_set *set = &source->set;
    for (int i = 0; i < set->count; i++) {
        size_t bytes = (size_t)set->files[i].column_count * sizeof *source->places[i];
        int first = 0;
        while (first < i && (set->files[first].column_count != set->files[i].column_count ||
                             memcmp(source->places[first], source->places[i], bytes) != 0))
            first++;
        source->layouts[i] = first;
    }
}

// A file that replaced the one that was looked at has other rows to hold out. Its numbers would be
// scaled as those of the old file.
static bel_status *check_unchanged(const bel_table_source *source)
{
    const bel_columns *c = source->columns;
    if (c->looked_names != source->set.names || c->looked_content == source->set.content)
        return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: it was changed since its columns were looked at",
                   source->set.files[0].path);
}

// Whether the description was made of the same rows.
static bool was_seen(const bel_table_source *source)
{
    const bel_columns *c = source->columns;
    return c->seen_content != 0 && c->seen_content == source->set.content &&
           bel_holdout_equal(&c->seen_holdout, &source->holdout);
}

static bel_status *open_files(bel_table_source *source, const bel_csv_options *options)
{
    const char *const *paths;
    const bel_csv_label none = {.column = -1};
    bel_csv_set *set = &source->set;
    bool follows = options->follow_secs > 0;
    BEL_TRY((follows ? bel_csv_set_open_growing
                     : bel_csv_set_open)(set, source->arena, options->paths, options->path_count,
                                         source->columns->delimiter, &paths));
    if (options->unchanged) BEL_TRY(check_unchanged(source));
    source->label_fields =
        bel_arena_alloc(source->arena, (size_t)set->count * sizeof *source->label_fields);
    source->places = bel_arena_alloc(source->arena, (size_t)set->count * sizeof *source->places);
    source->layouts = bel_arena_alloc(source->arena, (size_t)set->count * sizeof *source->layouts);
    for (int i = 0; i < set->count; i++)
        BEL_TRY(place_columns(source, i));
    find_layouts(source);
    source->at =
        bel_table_fields_make(source->columns, source->labeled, &source->base, source->arena);
    if (follows) {
        source->base.content = set->content;
        source->base.record_count = INT64_MAX;
        source->base.endless = true;
        source->base.kind = &followed_kind;
        return bel_csv_set_follow(set, &none, source->bad != NULL);
    }
    BEL_TRY(bel_csv_set_index(set, &none, source->bad != NULL));
    BEL_TRY(bel_holdout_apply(&source->holdout, set, source->label_fields));
    source->base.size_bytes = set->size_bytes;
    source->base.content = set->content;
    bool lazy = source->bad != NULL || source->unchecked;
    if (lazy && source->columns->tokens >= 0)
        bel_log_write(BEL_LOG_INFO,
                      "%s: texts of more than %d tokens are cut; they are not counted",
                      set->files[0].path, source->columns->items[source->columns->tokens].most);
    if ((!lazy || source->labeled) && !was_seen(source)) BEL_TRY(bel_table_source_check(source));
    source->base.record_count = set->row_count;
    return NULL;
}

bel_status *bel_source_open_table(const bel_csv_options *options, const bel_opening *opening,
                                  bel_source **out_source)
{
    bel_table_source *source = bel_xcalloc(1, sizeof *source);
    source->base.kind = &table_kind;
    source->base.table = options->table;
    source->arena = bel_arena_create();
    source->columns = options->table;
    source->labeled = !options->unlabeled && options->table->label >= 0;
    source->holdout = options->holdout;
    source->bad = opening->bad;
    source->unchecked = options->unchecked;
    bel_status *status = open_files(source, options);
    if (status != NULL) {
        table_destroy(&source->base);
        return status;
    }
    *out_source = &source->base;
    return NULL;
}
