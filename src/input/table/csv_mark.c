// Marks as text, which people also read in messages. So numbers come with their units, and a name,
// which may have any characters, is last. A mark must stay readable for later versions, as old
// checkpoints have it.
#include "input/table/csv_mark.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"

uint64_t bel_csv_mark_hash(const bel_csv_mark *mark, const bel_file_view *view)
{
    uint64_t hash = bel_file_view_ends(view, (uint64_t)mark->bytes, BEL_CSV_MARKED);
    if (mark->files_before > 0) hash = bel_hash64_more(hash, &mark->before, sizeof mark->before);
    return hash;
}

void bel_csv_mark_write(const bel_csv_mark *mark, bel_str *out_text)
{
    bel_str_printf(out_text, "%lld rows, %lld bytes, %lld lines, %016llx", (long long)mark->rows,
                   (long long)mark->bytes, (long long)mark->lines, (unsigned long long)mark->hash);
    if (mark->name == NULL) return;
    bel_str_printf(out_text, ", %lld rows of %lld files %016llx before %s",
                   (long long)mark->rows_before, (long long)mark->files_before,
                   (unsigned long long)mark->before, mark->name);
}

// Reads a number with a text after it, and moves *at there.
static bool read_number(const char **at, int base, const char *after, uint64_t *out_number)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(*at, &end, base);
    if (end == *at || errno != 0 || **at == '-' || strncmp(end, after, strlen(after)) != 0)
        return false;
    *out_number = number;
    *at = end + strlen(after);
    return true;
}

static bool read_count(const char **at, const char *after, int64_t *out_count)
{
    uint64_t number;
    if (!read_number(at, 10, after, &number) || number > INT64_MAX) return false;
    *out_count = (int64_t)number;
    return true;
}

bool bel_csv_mark_read(const char *text, bel_csv_mark *out_mark)
{
    bel_csv_mark mark = {0};
    const char *at = text;
    bool fits = read_count(&at, " rows, ", &mark.rows) &&
                read_count(&at, " bytes, ", &mark.bytes) &&
                read_count(&at, " lines, ", &mark.lines) && read_number(&at, 16, "", &mark.hash) &&
                mark.rows > 0;
    if (fits && *at != '\0') {
        fits = *at++ == ',' && read_count(&at, " rows of ", &mark.rows_before) &&
               read_count(&at, " files ", &mark.files_before) &&
               read_number(&at, 16, " before ", &mark.before) && *at != '\0' &&
               mark.rows_before < mark.rows;
        mark.name = at;
    }
    if (fits) *out_mark = mark;
    return fits;
}

bool bel_csv_mark_read_old(const char *text, bel_csv_mark *out_mark)
{
    bel_csv_mark mark = {0};
    const char *at = text;
    bool fits = read_count(&at, " rows, ", &mark.rows) &&
                read_count(&at, " bytes, ", &mark.bytes) && read_number(&at, 16, "", &mark.hash) &&
                *at == '\0' && mark.rows > 0;
    if (fits) *out_mark = mark;
    return fits;
}

uint64_t bel_csv_mark_hash_old(const bel_csv_mark *mark, const char *text)
{
    size_t size = (size_t)mark->bytes, piece = size < BEL_CSV_MARKED ? size : BEL_CSV_MARKED;
    return bel_hash64_more(bel_hash64(text, piece), text + size - piece, piece);
}
