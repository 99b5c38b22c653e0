// Names, cells and grains of rows of tables, for inferring and reading. Grains are gathered in
// waves, one slot a grain, and merged between the waves. A wave bounds the memory, and the merge
// order is that of the rows for any number of threads.
#include "input/table/csv_table.h"

#include <string.h>

#include "base/alloc.h"
#include "base/decimal.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "columns/statistics.h"
#include "input/table/column_names.h"

// --- Names and cells -----------------------------------------------------------------------------

// Refuses lines that end with only CR: they would be one row, with meaningless names.
static bel_status *check_line_ends(const bel_csv_file *file)
{
    size_t size = (size_t)(file->end - file->text);
    if (memchr(file->text, '\n', size) != NULL) return NULL;
    const char *end = memchr(file->text, '\r', size);
    if (end == NULL || end + 1 == file->end) return NULL;
    return bel_csv_file_error(file, end,
                              "lines end with only CR, expected LF or CR LF; hint: "
                              "tr '\\r' '\\n'");
}

bel_status *bel_csv_table_names(bel_csv_file *file, bool header, bel_arena *arena,
                                const char *const **out_names)
{
    bel_csv_field *fields;
    int count;
    const char *next;
    if (file->of_objects && !header)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: its objects name the columns, which a table without a header lacks",
                       file->path);
    BEL_TRY(check_line_ends(file));
    BEL_TRY(bel_csv_file_split(file, file->text, &fields, &count, &next));
    const char *zero = memchr(file->text, '\0', (size_t)(next - file->text));
    if (zero != NULL) {
        bel_free(fields);
        return bel_csv_file_error(file, zero, "expected text, got a zero byte in the first row");
    }
    const char **names = bel_arena_alloc(arena, (size_t)count * sizeof *names);
    for (int i = 0; i < count; i++) {
        char *name;
        if (header) {
            bel_csv_field trimmed = bel_csv_trim(&fields[i]);
            name = bel_xcalloc(bel_csv_value_length(&trimmed) + 1, 1);
            bel_csv_copy_value(&trimmed, name);
        } else {
            name = bel_strf("%d", i);
        }
        names[i] = bel_column_name_utf8(name, arena);
        bel_free(name);
    }
    bel_free(fields);
    file->column_count = count;
    if (header) file->rows = next;
    *out_names = names;
    return NULL;
}

const char *bel_csv_table_delimiter_hint(const char *const *names, int count, char delimiter)
{
    static const struct {
        char delimiter;
        const char *hint;
    } others[] = {{',', "; hint: fields have commas between them, and were trained with another "
                        "delimiter"},
                  {';', "; hint: fields have semicolons between them, and were trained with "
                        "another delimiter"},
                  {'\t', "; hint: fields have tabs between them, and were trained with another "
                         "delimiter"},
                  {'|', "; hint: fields have bars between them, and were trained with another "
                        "delimiter"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0] && count == 1; i++)
        if (others[i].delimiter != delimiter && strchr(names[0], others[i].delimiter) != NULL)
            return others[i].hint;
    return "";
}

// Some tools export column numbers as names: 0, 1, 2 … or 1, 2, 3 … are not data.
static bool are_data(const char *const *names, int count)
{
    bool counts = true;
    double first = 0;
    for (int i = 0; i < count; i++) {
        const char *end = names[i] + strlen(names[i]);
        double value;
        if (bel_decimal_parse(names[i], end, &value) != end) return false;
        if (i == 0) first = value;
        counts = counts && value == first + i && (i > 0 || first == 0 || first == 1);
    }
    return count > 1 && !counts;
}

void bel_csv_table_warn_of_numbers(const char *path, const char *const *names, int count)
{
    if (!are_data(names, count)) return;
    bel_log_write(BEL_LOG_WARN,
                  "%s: the first row contains only numbers and is used as the names of columns; if "
                  "it is data, pass --no_header",
                  path);
}

bel_cell bel_csv_table_cell(const bel_csv_field *field, bel_csv_spare *spare)
{
    bel_csv_field trimmed = bel_csv_trim(field);
    if (!trimmed.doubled) return (bel_cell){trimmed.text, trimmed.length};
    size_t length = bel_csv_value_length(&trimmed);
    if (length + 1 > spare->capacity) {
        spare->capacity = 2 * (length + 1);
        spare->text = bel_xrealloc(spare->text, spare->capacity);
    }
    bel_csv_copy_value(&trimmed, spare->text);
    return (bel_cell){spare->text, length};
}

// --- Grains --------------------------------------------------------------------------------------

enum { GRAINS_A_THREAD = 8 };

typedef struct wave {
    const bel_csv_grains *grains;
    int64_t first; // its first grain
} wave;

int bel_csv_grain_threads(int thread_count)
{
    return thread_count > 0 ? thread_count : bel_available_cores();
}

int bel_csv_grain_slots(int thread_count)
{
    return bel_csv_grain_threads(thread_count) * GRAINS_A_THREAD;
}

static void csv_table_gather(void *argument, int64_t tile)
{
    const wave *w = argument;
    int64_t first = (w->first + tile) * BEL_GRAIN_ROWS, rest = w->grains->row_count - first;
    w->grains->gather(w->grains->user, (int)tile, first,
                      rest < BEL_GRAIN_ROWS ? rest : BEL_GRAIN_ROWS);
}

bel_status *bel_csv_grains_run(const bel_csv_grains *grains)
{
    int64_t count = (grains->row_count + BEL_GRAIN_ROWS - 1) / BEL_GRAIN_ROWS;
    int slots = bel_csv_grain_slots(grains->thread_count),
        threads = bel_csv_grain_threads(grains->thread_count);
    bel_team *team;
    BEL_TRY(bel_team_create(count < threads ? (int)count + (count == 0) : threads, &team));
    bool goes_on = true;
    for (int64_t first = 0; first < count && goes_on; first += slots) {
        wave w = {grains, first};
        int tiles = (int)(count - first < slots ? count - first : slots);
        bel_team_run(team, csv_table_gather, &w, tiles);
        for (int i = 0; i < tiles && goes_on; i++)
            goes_on = grains->merge(grains->user, i);
    }
    bel_team_destroy(team);
    return NULL;
}
