// Rows are sorted by a hash of their label's text, and within one label by a hash of their number
// and the seed. Then every n-th row is held out, so each class gives its share, to within one row,
// in any order of the file. This puts labels that are all different, such as measured numbers, in a
// random order. The hash is of the text instead of the class, because classes are known only after
// a look at the rows that are trained on.
//
// The first row of a file has number 0. Rows keep their places if a label is missing or a row
// cannot be read, because such rows are found only later.
#include "input/table/holdout.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/decimal.h"
#include "base/hash.h"
#include "base/str.h"
#include "input/table/csv_table.h"

typedef struct key {
    uint64_t label, order;
    int64_t row;
} key;

typedef struct keying {
    const bel_csv_set *set;
    const int *label_fields;
    uint64_t seed;
    key *keys;
    bel_csv_spare *spares; // per slot
} keying;

static bool is_none(const bel_holdout *h)
{
    return h->share == 0 && h->fold_count == 0;
}

bel_status *bel_holdout_check(const bel_holdout *h)
{
    bool folds = h->fold_count >= 2 && h->fold >= 0 && h->fold < h->fold_count && h->share == 0;
    bool share = h->share > 0 && h->share < 1 && h->fold_count == 0;
    if (is_none(h) || folds || share) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "holdout: expected a share in (0, 1), or a fold in [0, fold_count) of two or "
                   "more, got share %g, fold %d of %d",
                   h->share, h->fold, h->fold_count);
}

// Hash of the text of the label of the row at `at`; 0: no label, or the row cannot be split.
static uint64_t label_hash(const bel_csv_file *file, const char *at, int label,
                           bel_csv_spare *spare)
{
    bel_csv_field field;
    for (int i = 0; i <= label; i++) {
        bel_csv_stop stop = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        if (stop > BEL_CSV_ROW_END || (stop == BEL_CSV_ROW_END && i < label)) return 0;
    }
    if (label < 0) return 0;
    bel_cell cell = bel_csv_table_cell(&field, spare);
    const char *end = cell.text + cell.length;
    double number; // 1 and 1.0 are one class
    if (cell.length > 0 && bel_decimal_parse(cell.text, end, &number) == end)
        return bel_hash64(&number, sizeof number);
    return bel_hash64(cell.text, cell.length);
}

static void make_keys(void *user, int slot, int64_t first, int64_t count)
{
    keying *k = user;
    for (int64_t row = first; row < first + count; row++) {
        const char *at;
        const bel_csv_file *file = bel_csv_set_find(k->set, row, &at);
        int label = k->label_fields[file - k->set->files];
        k->keys[row] = (key){.label = label_hash(file, at, label, &k->spares[slot]),
                             .order = bel_hash64_more(k->seed, &row, sizeof row),
                             .row = row};
    }
}

static bool go_on(void *user, int slot)
{
    (void)user, (void)slot;
    return true;
}

static int by_label(const void *a, const void *b)
{
    const key *x = a, *y = b;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

// Whether the row at this place of the order is held out. The places before it hold
// floor(place * share) of them.
static bool is_held(const bel_holdout *h, int64_t place)
{
    if (h->fold_count > 0) return place % h->fold_count == h->fold;
    return (int64_t)((double)(place + 1) * h->share) > (int64_t)((double)place * h->share);
}

// Marks the rows that are held out: held[row].
static void holdout_mark(const bel_holdout *h, key *keys, int64_t count, bool *held)
{
    qsort(keys, (size_t)count, sizeof *keys, by_label);
    for (int64_t place = 0; place < count; place++)
        held[keys[place].row] = is_held(h, place);
}

static bel_status *holdout_keep(const bel_holdout *h, bel_csv_set *set, const bool *held)
{
    bel_number_list rows = {0};
    bel_status *status = NULL;
    int64_t count = set->row_count;
    for (int64_t row = 0; row < count && status == NULL; row++)
        if (held[row] == h->held) status = bel_number_list_append(&rows, row);
    if (status == NULL && (rows.count == 0 || (int64_t)rows.count == count)) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT,
                         "%s: the holdout takes all %lld rows or none; hint: another share",
                         set->files[0].path, (long long)count);
    }
    if (status == NULL) bel_csv_set_keep(set, &rows);
    bel_number_list_deinit(&rows);
    return status;
}

bel_status *bel_holdout_apply(const bel_holdout *h, bel_csv_set *set, const int *label_fields)
{
    BEL_TRY(bel_holdout_check(h));
    if (is_none(h)) return NULL;
    size_t rows = (size_t)set->row_count, bytes = rows * sizeof(key);
    void *keys = NULL, *held = NULL;
    int slots = bel_csv_grain_slots(0);
    keying k = {.set = set, .label_fields = label_fields, .seed = h->seed};
    bel_status *status = bel_pages_create(bytes, false, "the order of the rows", &keys);
    if (status == NULL) status = bel_pages_create(rows, false, "the rows held out", &held);
    k.keys = keys;
    k.spares = bel_xcalloc((size_t)slots, sizeof *k.spares);
    if (status == NULL) {
        status = bel_csv_grains_run(&(bel_csv_grains){
            .row_count = set->row_count, .gather = make_keys, .merge = go_on, .user = &k});
    }
    if (status == NULL) {
        holdout_mark(h, keys, set->row_count, held);
        status = holdout_keep(h, set, held);
    }
    for (int i = 0; i < slots; i++)
        bel_free(k.spares[i].text);
    bel_free(k.spares);
    bel_pages_destroy(held, rows);
    bel_pages_destroy(keys, bytes);
    return status;
}

static bel_status *list(const bel_csv_options *csv, const char *label, bel_arena *arena,
                        bel_csv_set *set)
{
    const bel_csv_label none = {.column = -1};
    const char *const *paths, *const *names;
    BEL_TRY(bel_csv_set_open(set, arena, csv->paths, csv->path_count, csv->delimiter, &paths));
    int *fields = bel_arena_alloc(arena, (size_t)set->count * sizeof *fields);
    for (int i = 0; i < set->count; i++) {
        BEL_TRY(bel_csv_table_names(&set->files[i], !csv->no_header, arena, &names));
        fields[i] = -1;
        for (int f = set->files[i].column_count - 1; f >= 0 && label != NULL; f--)
            if (strcmp(names[f], label) == 0) fields[i] = f; // the first of two
    }
    BEL_TRY(bel_csv_set_index(set, &none, true));
    return bel_holdout_apply(&csv->holdout, set, fields);
}

bel_status *bel_holdout_list(const bel_csv_options *csv, const char *label, int64_t **out_rows)
{
    bel_csv_set set = {0};
    bel_arena *arena = bel_arena_create();
    bel_status *status = list(csv, label, arena, &set);
    if (status == NULL) {
        *out_rows = bel_xcalloc(set.kept.count + 1, sizeof **out_rows);
        memcpy(*out_rows, set.kept.items, set.kept.count * sizeof **out_rows);
    }
    bel_csv_set_close(&set);
    bel_arena_destroy(arena);
    return status;
}

int64_t bel_holdout_rows(const bel_holdout *h, int64_t rows)
{
    if (is_none(h)) return rows;
    int64_t held = h->fold_count > 0 ? (rows + h->fold_count - 1 - h->fold) / h->fold_count
                                     : (int64_t)((double)rows * h->share);
    return h->held ? held : rows - held;
}

bool bel_holdout_equal(const bel_holdout *a, const bel_holdout *b)
{
    if (is_none(a) || is_none(b)) return is_none(a) && is_none(b);
    return a->share == b->share && a->fold == b->fold && a->fold_count == b->fold_count &&
           a->seed == b->seed && a->held == b->held;
}

void bel_holdout_describe(const bel_holdout *h, bel_str *out_text)
{
    if (is_none(h)) return;
    bel_str_printf(out_text, " holdout=%a,%d/%d,%llu,%d", h->share, h->fold, h->fold_count,
                   (unsigned long long)h->seed, h->held);
}
