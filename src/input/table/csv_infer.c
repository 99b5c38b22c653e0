// Finds the columns of a table from all of its cells: opens the files and reads their names,
// gathers all rows (table_look.c), lets rules make a description (columns/guess.h), and refuses,
// before training, a description that cannot be written or read back. Rows without a label teach
// nothing, so they do not count. The result for large files is kept for other processes
// (look_cache.h) under a hash of their content. The content is hashed again after the look, so that
// no result is kept for a file that changed meanwhile.
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/sized.h"
#include "base/str.h"
#include "belfry/estimator.h"
#include "input/table/column_names.h"
#include "input/table/holdout.h"
#include "input/table/look_cache.h"
#include "input/table/table_look.h"

// --- Opening -------------------------------------------------------------------------------------

enum { CANDIDATES = 4 };
static const char candidates[CANDIDATES] = {',', ';', '\t', '|'};

// Counts each candidate in the row at `at`, outside quotes. Returns the next row.
static const char *count_candidates(const char *at, const char *end, size_t counts[CANDIDATES])
{
    bool quoted = false;
    memset(counts, 0, CANDIDATES * sizeof *counts);
    for (; at < end && (quoted || *at != '\n'); at++) {
        quoted = quoted != (*at == '"');
        for (size_t c = 0; c < CANDIDATES && !quoted; c++)
            counts[c] += *at == candidates[c];
    }
    return at < end ? at + 1 : at;
}

// The candidate with the most occurrences in the first line. If the second line has another number
// of it, as after names with commas in them, one that both lines have equally often goes before.
static char likely_delimiter(const char *text, const char *end)
{
    size_t first[CANDIDATES], second[CANDIDATES], best = 0, alike = CANDIDATES;
    (void)count_candidates(count_candidates(text, end, first), end, second);
    for (size_t c = 0; c < CANDIDATES; c++) {
        if (first[c] > first[best]) best = c;
        bool same = first[c] > 0 && first[c] == second[c];
        if (same && (alike == CANDIDATES || first[c] > first[alike])) alike = c;
    }
    return candidates[first[best] != second[best] && alike < CANDIDATES ? alike : best];
}

static int find_name(const bel_table_look *in, const char *name)
{
    size_t at = 0;
    for (int found; (found = bel_index_next_text(&in->index, name, &at)) >= 0;)
        if (strcmp(in->names[found], name) == 0) return found;
    return -1;
}

// Takes the names of a file's columns. If two have the same name, the first counts; one warning
// names all of them.
static void take_names(bel_table_look *in, const bel_csv_file *file, const char *const *names)
{
    enum { SHOWN = 10 };
    bel_str others = {0};
    int other_count = 0;
    in->names = bel_arena_alloc(in->arena, (size_t)file->column_count * sizeof *in->names);
    for (int i = 0; i < file->column_count; i++) {
        if (find_name(in, names[i]) >= 0) {
            if (++other_count > SHOWN) continue;
            bel_str_printf(&others, "%scolumn %d, \"%s\"", other_count > 1 ? "; " : "", i + 1,
                           names[i]);
            continue;
        }
        in->names[in->count] = names[i];
        bel_index_put_text(&in->index, names[i], in->count++);
    }
    if (other_count > 0) {
        bel_log_write(BEL_LOG_WARN, "%s: %d %s the name of an earlier one, and %s left out: %s%s",
                      file->path, other_count, other_count == 1 ? "column has" : "columns have",
                      other_count == 1 ? "is" : "are", others.text,
                      other_count > SHOWN ? " …" : "");
    }
    bel_str_deinit(&others);
}

static bel_status *place_columns(bel_table_look *in, int number)
{
    bel_csv_file *file = &in->set.files[number];
    const char *const *names;
    BEL_TRY(bel_csv_table_names(file, in->description->header, in->arena, &names));
    if (number == 0) {
        take_names(in, file, names);
        if (in->description->header)
            bel_csv_table_warn_of_numbers(file->path, names, file->column_count);
    }
    size_t bytes = (size_t)file->column_count * sizeof **in->places;
    int *places = in->places[number] = bel_arena_alloc(in->arena, bytes);
    bool *taken = bel_arena_alloc(in->arena, (size_t)in->count * sizeof *taken);
    for (int i = 0; i < file->column_count; i++) {
        int column = find_name(in, names[i]);
        places[i] = column < 0 || taken[column] ? -1 : column;
        if (column >= 0) taken[column] = true;
    }
    for (int c = 0; c < in->count; c++) {
        if (taken[c]) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: no column \"%s\", which %s has", file->path,
                       in->names[c], in->source);
    }
    return NULL;
}

static bel_status *open_files(bel_table_look *in, const bel_csv_options *csv)
{
    const char *const *paths;
    BEL_TRY(bel_csv_set_open(&in->set, in->arena, csv->paths, csv->path_count, ',', &paths));
    const bel_csv_file *first = NULL;
    for (int i = 0; i < in->set.count && first == NULL; i++)
        if (!in->set.files[i].of_objects) first = &in->set.files[i];
    in->source = in->set.files[0].path;
    if (csv->delimiter != '\0' && first == NULL)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: its objects have no delimiter, but one was given; hint: leave it out",
                       in->source);
    in->description->delimiter = csv->delimiter != '\0' ? csv->delimiter
                                 : first == NULL        ? ','
                                                        : likely_delimiter(first->text, first->end);
    in->places = bel_arena_alloc(in->arena, (size_t)in->set.count * sizeof *in->places);
    for (int i = 0; i < in->set.count; i++) {
        bel_csv_file *file = &in->set.files[i];
        if (!file->of_objects) file->delimiter = in->description->delimiter;
        BEL_TRY(place_columns(in, i));
    }
    return NULL;
}

// Restricts the look to the rows that are trained on.
static bel_status *hold_out(bel_table_look *in)
{
    int *labels = bel_arena_alloc(in->arena, (size_t)in->set.count * sizeof *labels);
    for (int i = 0; i < in->set.count; i++) {
        labels[i] = -1;
        for (int f = 0; f < in->set.files[i].column_count; f++)
            if (in->places[i][f] >= 0 && in->places[i][f] == in->label) labels[i] = f;
    }
    return bel_holdout_apply(&in->holdout, &in->set, labels);
}

static void clean_up(bel_table_look *in)
{
    bel_table_look_free_room(in);
    bel_csv_set_close(&in->set);
    bel_index_deinit(&in->index);
    bel_arena_destroy(in->arena);
}

// --- Result --------------------------------------------------------------------------------------

// Names the wrong cells of a column of numbers, each with its position; one error has them all.
static bel_status *name_wrong_cells(const bel_table_look *in, int column, bel_status *status)
{
    const bel_column_statistics *s = &in->totals[column];
    bel_str text = {0};
    for (int i = 0; i < s->other_count; i++) {
        bel_status *where = bel_table_look_cell(in, s->others[i], column);
        bel_str_printf(&text, "%s%s", i == 0 ? "" : "; ", bel_status_message(where));
        bel_status_ignore(where); // part of the message
    }
    int64_t wrong = s->cells - s->missing - s->numbers;
    bel_status *all = BEL_ERR(
        BEL_DATA_LOSS,
        "%s, but %lld of its cells are not numbers: %s%s; hint: --missing for texts that "
        "stand for nothing, --categorical \"%s\" for names, --ignore \"%s\" to leave it out",
        bel_status_message(status), (long long)wrong, text.text, wrong > s->other_count ? " …" : "",
        in->names[column], in->names[column]);
    bel_status_ignore(status); // part of the longer message
    bel_str_deinit(&text);
    return all;
}

static bool are_utf8(const char *const *texts, int count)
{
    for (int i = 0; i < count; i++) {
        const char *at = texts[i];
        int bytes = 1;
        while (*at != '\0' && (bytes = bel_utf8_bytes(at)) > 0)
            at += bytes;
        if (bytes == 0) return false;
    }
    return true;
}

// Checks for UTF-8, as YAML and messages hold nothing else.
static bel_status *check_texts(const bel_table_look *in)
{
    const bel_columns *d = in->description;
    for (int i = 0; i < d->count; i++) {
        const bel_column *column = &d->items[i];
        if (are_utf8(column->values, column->value_count) &&
            are_utf8(column->absent.texts, column->absent.count))
            continue;
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: column \"%s\": expected text in UTF-8; hint: iconv -f ISO-8859-1 "
                       "-t UTF-8",
                       in->source, column->name);
    }
    if (are_utf8(d->missing.texts, d->missing.count)) return NULL;
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s: expected texts for missing values in UTF-8; hint: iconv -f ISO-8859-1 "
                   "-t UTF-8",
                   in->source);
}

// Whether every row read is good to train on: rows without a label or a weight are not.
static bool all_are_good(const bel_table_look *in)
{
    bool good = in->label >= 0 && !in->options->skip_bad;
    for (int c = 0; c < in->count; c++) {
        bool whole = in->uses[c] == BEL_GUESS_LABEL || in->uses[c] == BEL_GUESS_WEIGHT;
        if (whole && in->totals[c].cells < in->set.row_count) good = false;
        if (whole && in->totals[c].missing > 0) good = false;
    }
    return good;
}

static void note_seen(const bel_table_look *in)
{
    if (!all_are_good(in)) return;
    in->description->seen_content = in->set.content;
    in->description->seen_holdout = in->holdout;
}

static bel_status *csv_infer_describe(bel_table_look *in)
{
    bel_guess_column *columns = bel_arena_alloc(in->arena, (size_t)in->count * sizeof *columns);
    int wrong = -1;
    for (int c = 0; c < in->count; c++)
        columns[c] = (bel_guess_column){in->names[c], &in->totals[c]};
    in->description->rows = in->count > 0 ? in->totals[0].cells : 0;
    bel_status *status =
        bel_guess(columns, in->uses, in->count, in->options, in->source, in->description, &wrong);
    if (status != NULL && wrong >= 0) return name_wrong_cells(in, wrong, status);
    BEL_TRY(status);
    BEL_TRY(check_texts(in));
    note_seen(in);
    BEL_TRY(bel_columns_finish(in->description, in->source));
    bel_table_look_suspect(in);
    return bel_columns_check_text(in->description, in->source);
}

// Opens the files and finds the requested columns in their headers.
static bel_status *csv_infer_prepare(bel_table_look *in, const bel_csv_options *csv)
{
    const bel_columns_options *o = in->options;
    bel_columns *d = in->description;
    d->header = !csv->no_header;
    if (o->decimal == ',') d->decimal = ',';
    if (o->missing != NULL) {
        const char **missing =
            bel_arena_alloc(d->arena, ((size_t)o->missing_count + 1) * sizeof *missing);
        int count = 0;
        missing[count++] = "";
        for (int i = 0; i < o->missing_count; i++)
            if (*o->missing[i] != '\0')
                missing[count++] = bel_arena_strdup(d->arena, o->missing[i]);
        d->missing = (bel_missing_texts){.texts = missing, .count = count};
        bel_missing_texts_prepare(&d->missing, d->arena);
    }
    BEL_TRY(open_files(in, csv));
    bel_table_look_make_room(in);
    bel_guess_column *named = bel_arena_alloc(in->arena, (size_t)in->count * sizeof *named);
    for (int c = 0; c < in->count; c++)
        named[c].name = in->names[c];
    BEL_TRY(bel_guess_uses(named, in->count, o, in->source, in->uses));
    in->label = -1;
    for (int c = in->count - 1; c >= 0; c--)
        if (in->uses[c] == BEL_GUESS_LABEL) in->label = c;
    in->holdout = csv->holdout;
    return NULL;
}

static bel_status *look_at_all(bel_table_look *in)
{
    const bel_csv_label none = {.column = -1};
    BEL_TRY(bel_csv_set_index(&in->set, &none, in->options->skip_bad));
    BEL_TRY(hold_out(in));
    BEL_TRY(bel_table_look_gather(in));
    return csv_infer_describe(in);
}

// --- Number of rows ------------------------------------------------------------------------------

static bel_status *count_rows(const bel_columns *columns, const char *const *paths, int path_count,
                              bel_arena *arena, bel_csv_set *set)
{
    const char *const *found;
    const bel_csv_label none = {.column = -1};
    BEL_TRY(bel_csv_set_open(set, arena, paths, path_count, columns->delimiter, &found));
    for (int i = 0; i < set->count; i++) {
        const char *const *names;
        BEL_TRY(bel_csv_table_names(&set->files[i], columns->header, arena, &names));
    }
    return bel_csv_set_index(set, &none, true);
}

bel_status *bel_csv_table_count(const bel_columns *columns, const char *const *paths,
                                int path_count, const bel_holdout *holdout, int64_t *out_rows)
{
    bel_csv_set set = {0};
    bel_arena *arena = bel_arena_create();
    bel_status *status = count_rows(columns, paths, path_count, arena, &set);
    *out_rows = bel_holdout_rows(holdout, set.row_count);
    bel_csv_set_close(&set);
    bel_arena_destroy(arena);
    return status;
}

// --- Cached descriptions -------------------------------------------------------------------------

static void hash_text(bel_hasher *hasher, const char *text)
{
    bel_hasher_update(hasher, text != NULL ? text : "\1", text != NULL ? strlen(text) + 1 : 2);
}

static void hash_list(bel_hasher *hasher, const char *const *texts, int count)
{
    bel_hasher_update(hasher, &count, sizeof count);
    for (int i = 0; i < count; i++)
        hash_text(hasher, texts[i]);
}

static void hash_number(bel_hasher *hasher, int64_t number)
{
    bel_hasher_update(hasher, &number, sizeof number);
}

// Hash of everything that decides a description: the files' content, the options, and the rules.
static bel_hash128 look_key(const bel_table_look *in)
{
    const bel_columns_options *o = in->options;
    const bel_columns *d = in->description;
    const bel_holdout *h = &in->holdout;
    bel_hasher *hasher = bel_hasher_create();
    hash_text(hasher, bel_version());
    hash_number(hasher, BEL_GUESS_RULES);
    hash_number(hasher, (int64_t)in->set.content);
    for (int i = 0; i < in->set.count; i++)
        hash_number(hasher, (int64_t)in->set.files[i].view.size);
    const int64_t numbers[] = {o->decimal, d->delimiter,  d->header,
                               h->fold,    h->fold_count, (int64_t)h->seed,
                               h->held,    o->no_label,   (int64_t)o->label_kind,
                               o->skip_bad};
    bel_hasher_update(hasher, numbers, sizeof numbers);
    bel_hasher_update(hasher, &h->share, sizeof h->share);
    hash_text(hasher, o->label);
    hash_text(hasher, o->weight);
    hash_text(hasher, o->text);
    hash_number(hasher, o->text_most);
    hash_list(hasher, o->labels, o->label_count);
    hash_list(hasher, o->ignored, o->ignored_count);
    hash_list(hasher, o->categories, o->category_count);
    hash_list(hasher, o->numbers, o->number_count);
    hash_list(hasher, o->logs, o->log_count);
    hash_list(hasher, o->keys, o->key_count);
    hash_list(hasher, d->missing.texts, d->missing.count);
    hash_list(hasher, o->classes, o->classes != NULL ? (int)o->class_count : 0);
    bel_hash128 key = bel_hasher_finish(hasher);
    bel_hasher_destroy(hasher);
    return key;
}

// Parses a description that another process made of the same files; NULL: absent or unreadable.
static bel_columns *parse_kept(const bel_table_look *in, const char *text, bool seen)
{
    bel_columns *columns = NULL;
    if (text == NULL) return NULL;
    bel_status *status = bel_columns_parse(text, in->source, &columns);
    bel_status_ignore(status); // then this process looks
    if (status != NULL) return NULL;
    if (seen) {
        columns->seen_content = in->set.content;
        columns->seen_holdout = in->holdout;
    }
    return columns;
}

static bel_status *look_once(bel_table_look *in)
{
    char *text;
    bool seen;
    bel_look look;
    bel_look_begin(look_key(in), &look, &text, &seen);
    bel_columns *kept = parse_kept(in, text, seen);
    bel_free(text);
    bel_status *status = NULL;
    if (kept != NULL) {
        bel_columns_destroy(in->description);
        in->description = kept;
    } else {
        status = look_at_all(in);
        if (status == NULL) status = bel_csv_set_check_content(&in->set);
    }
    bool keeps = kept == NULL && status == NULL;
    bel_look_end(&look, keeps ? bel_columns_text(in->description) : NULL,
                 in->description->seen_content != 0);
    return status;
}

static bel_status *csv_infer_run(bel_table_look *in, const bel_csv_options *csv)
{
    enum { LARGE = 16 << 20 }; // bytes from which a look takes longer than the cache
    BEL_TRY(csv_infer_prepare(in, csv));
    BEL_TRY(in->set.size_bytes < LARGE ? look_at_all(in) : look_once(in));
    for (int c = 0; c < in->description->count; c++) {
        const bel_column *column = &in->description->items[c];
        if (column->warning == NULL) continue;
        bel_log_write(BEL_LOG_WARN, "%s: column \"%s\": %s", in->source, column->name,
                      column->warning);
    }
    in->description->looked_names = in->set.names;
    in->description->looked_content = in->set.content;
    return NULL;
}

bel_status *bel_columns_infer(const bel_csv_options *csv, const bel_columns_options *options,
                              bel_columns **out_columns)
{
    bel_csv_options files;
    bel_columns_options known;
    BEL_TRY(bel_sized_take(&files, sizeof files, csv, "bel_csv_options"));
    BEL_TRY(bel_sized_take(&known, sizeof known, options, "bel_columns_options"));
    bel_table_look in = {
        .options = &known, .description = bel_columns_create(), .arena = bel_arena_create()};
    bel_status *status = csv_infer_run(&in, &files);
    clean_up(&in);
    if (status == NULL) {
        *out_columns = in.description;
    } else {
        bel_columns_destroy(in.description);
    }
    return status;
}
