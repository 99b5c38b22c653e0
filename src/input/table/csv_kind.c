// Most formats begin with distinctive bytes. LIBSVM's is text; its first line identifies it: a
// label, then pairs of an index and a value. The name of a column may begin like a format, so these
// patterns include bytes that no name has. Unrecognized files are read as CSV.
#include "input/table/csv_kind.h"

#include <stdbool.h>
#include <string.h>

#include "base/decimal.h"

typedef struct format {
    const char *magic;
    size_t length;
    const char *name, *hint;
} format;

#define MAGIC(text) text, sizeof(text) - 1

static const format formats[] = {
    {MAGIC("\xFF\xFE"), "UTF-16", "iconv -f UTF-16 -t UTF-8"},
    {MAGIC("\xFE\xFF"), "UTF-16", "iconv -f UTF-16 -t UTF-8"},
    {MAGIC("PK\3\4"), "a zip archive, or a workbook of Excel",
     "unzip it, or save the sheet as CSV"},
    {MAGIC("\xD0\xCF\x11\xE0"), "a workbook of Excel", "save the sheet as CSV"},
    {MAGIC("PAR1\x15"), "a Parquet file", "duckdb -csv -c \"from 'FILE'\""},
    {MAGIC("ARROW1\0"), "an Arrow file", "duckdb or pandas writes it as CSV"},
    {MAGIC("Obj\1"), "an Avro file", "pandas writes it as CSV"},
    {MAGIC("\x89HDF"), "an HDF5 file", "pandas writes it as CSV"},
    {MAGIC("\x93NUMPY"), "an array of NumPy", "numpy.savetxt writes it as CSV"},
    {MAGIC("SQLite format 3"), "a database of SQLite",
     "sqlite3 -csv -header FILE 'select * from TABLE'"},
    {MAGIC("BZh91AY"), "a file packed by bzip2", "bunzip2"},
    {MAGIC("\xFD"
           "7zXZ"),
     "a file packed by xz", "unxz"},
    {MAGIC("\x28\xB5\x2F\xFD"), "a file packed by zstd", "unzstd"},
    {MAGIC("%PDF"), "a PDF", "save the table as CSV"},
    {MAGIC("<!DOCTYPE"), "a web page", "was the right address fetched?"},
    {MAGIC("<html"), "a web page", "was the right address fetched?"},
    {MAGIC("<?xml"), "XML", "save the table as CSV"},
    {MAGIC("{\""), "JSON", "jq -r '[.A, .B] | @csv', or a name that ends with .jsonl"},
    {MAGIC("[{"), "JSON", "jq -r '.[] | [.A, .B] | @csv'"},
    {MAGIC("%relation"), "an ARFF file", "pandas writes it as CSV"},
    {MAGIC("@relation"), "an ARFF file", "pandas writes it as CSV"},
};

static const char *pass_spaces(const char *at, const char *end)
{
    while (at < end && *at == ' ')
        at++;
    return at;
}

// Whether the line is "1 3:0.5 17:1": a label, and pairs with rising indices.
static bool is_libsvm(const char *text, const char *end)
{
    double number, last = -1;
    int pairs = 0;
    const char *at = bel_decimal_parse(text, end, &number);
    if (at == NULL || at == end || *at != ' ') return false;
    for (at = pass_spaces(at, end); at < end && *at != '\r'; at = pass_spaces(at, end)) {
        const char *value = bel_decimal_parse(at, end, &number);
        if (value == NULL || value == end || *value != ':' || number <= last) return false;
        last = number;
        at = bel_decimal_parse(value + 1, end, &number);
        if (at == NULL) return false;
        pairs++;
    }
    return pairs > 0;
}

// Excel reads and writes "sep=;" as the first line.
static bool is_separator_line(const char *text, const char *end)
{
    static const char begin[] = "sep=";
    size_t length = sizeof begin - 1;
    if (end > text && end[-1] == '\r') end--;
    return (size_t)(end - text) == length + 1 && memcmp(text, begin, length) == 0;
}

static bel_status *csv_kind_other(const char *path, const char *name, const char *hint)
{
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected CSV in UTF-8, got %s; hint: %s", path, name, hint);
}

bel_status *bel_csv_kind_check(const char *path, const char *text, size_t size)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        const format *f = &formats[i];
        if (size >= f->length && memcmp(text, f->magic, f->length) == 0)
            return csv_kind_other(path, f->name, f->hint);
    }
    const char *stop = memchr(text, '\n', size), *end = stop != NULL ? stop : text + size;
    if (is_separator_line(text, end))
        return csv_kind_other(path, "a first line that names the delimiter",
                              "leave that line out (tail -n +2)");
    if (is_libsvm(text, end))
        return csv_kind_other(path, "rows of LIBSVM's format",
                              "write each row's values with commas between them, zeros too");
    return NULL;
}
