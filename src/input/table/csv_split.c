// CSV splitter. Quotes protect delimiters, line breaks and doubled quotes, if the field begins with
// a quote. A quote anywhere else is a fault; the splitter does not guess its meaning. A carriage
// return ends a row only before a line feed or at the end of the text. Otherwise it is text.
//
// A field is a pointer into the file's text, which has no zero byte after it, so no function reads
// at or after `end`. bel_csv_copy_value makes doubled quotes single on request, since hardly any
// field has them.
#include "input/table/csv_split.h"

#include <string.h>

bool bel_csv_is_row_end(const char *at, const char *end)
{
    if (at == end || *at == '\n') return true;
    return *at == '\r' && (at + 1 == end || at[1] == '\n');
}

// Skips the row end at `at`; returns the start of the next row.
static const char *skip_row_end(const char *at, const char *end)
{
    if (at < end && *at == '\r') at++;
    if (at < end && *at == '\n') at++;
    return at;
}

// Splits off a field that begins with a quote. It ends at the first quote that is not doubled,
// after which a delimiter or a row end must follow. `out_field` is the text between the quotes,
// with doubled quotes unchanged.
static bel_csv_stop next_quoted(const char *text, const char *end, char delimiter,
                                bel_csv_field *out_field, const char **out_next)
{
    *out_field = (bel_csv_field){.text = text + 1};
    const char *quote = text + 1;
    for (;;) {
        quote = memchr(quote, '"', (size_t)(end - quote));
        if (quote == NULL) {
            *out_next = text;
            return BEL_CSV_OPEN_QUOTE;
        }
        if (quote + 1 == end || quote[1] != '"') break;
        out_field->doubled = true;
        quote += 2;
    }
    out_field->length = (size_t)(quote - out_field->text);
    const char *behind = quote + 1;
    *out_next = behind;
    if (bel_csv_is_row_end(behind, end)) {
        *out_next = skip_row_end(behind, end);
        return BEL_CSV_ROW_END;
    }
    if (*behind != delimiter) return BEL_CSV_AFTER_QUOTE;
    *out_next = behind + 1;
    return BEL_CSV_DELIMITER;
}

bel_csv_stop bel_csv_next_field(const char *text, const char *end, char delimiter,
                                bel_csv_field *out_field, const char **out_next)
{
    if (text < end && *text == '"') return next_quoted(text, end, delimiter, out_field, out_next);
    const char *at = text;
    while (at < end && *at != delimiter && *at != '"' && *at != '\n' && *at != '\r')
        at++;
    // A carriage return ends the row only before a line feed or the end; otherwise it is text.
    while (at < end && *at == '\r' && !bel_csv_is_row_end(at, end)) {
        at++;
        while (at < end && *at != delimiter && *at != '"' && *at != '\n' && *at != '\r')
            at++;
    }
    *out_field = (bel_csv_field){.text = text, .length = (size_t)(at - text)};
    if (bel_csv_is_row_end(at, end)) {
        *out_next = skip_row_end(at, end);
        return BEL_CSV_ROW_END;
    }
    *out_next = at;
    if (*at == '"') return BEL_CSV_STRAY_QUOTE;
    *out_next = at + 1;
    return BEL_CSV_DELIMITER;
}

// --- Rows ----------------------------------------------------------------------------------------

// Stores the starts of fields after the delimiters in the eight bytes at `at`. `found` has the
// highest bit of each delimiter's byte. Returns the number of delimiters. The loop stores two
// starts at a time without a check between them, since the branch predictor cannot predict the
// number.
static inline int note_starts(const char *at, uint64_t found, const char **starts)
{
    const uint64_t none = (uint64_t)1 << 63;
    const int count = bel_csv_count_marked(found);
    int noted = 0;
    do {
        for (int i = 0; i < 2; i++) {
            starts[noted + i] = at + __builtin_ctzll(found | none) / 8 + 1;
            found &= found - 1;
        }
        noted += 2;
    } while (noted < count);
    return count;
}

// Splits a row without quotes. Returns its number of fields (counting may stop above `count`) and
// sets their starts. `room` bytes after the text are readable.
static int split_plain(const char *row, const char *stop, size_t room, char delimiter, int count,
                       const char **starts)
{
    const char *at = row;
    int fields = 1;
    starts[0] = row;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t wanted = bel_csv_eight(delimiter);
    uint64_t bytes;
    for (; stop - at >= 8 && fields <= count; at += 8) {
        memcpy(&bytes, at, sizeof bytes);
        fields += note_starts(at, bel_csv_equal_bytes(bytes, wanted), starts + fields);
    }
    if (stop > at && stop - at < 8 && room >= 8 && fields <= count) {
        memcpy(&bytes, at, sizeof bytes);
        const uint64_t before = ((uint64_t)1 << 8 * (stop - at)) - 1;
        fields += note_starts(at, bel_csv_equal_bytes(bytes, wanted) & before, starts + fields);
        at = stop;
    }
#else
    (void)room;
#endif
    for (; at < stop && fields <= count; at++)
        if (*at == delimiter) starts[fields++] = at + 1;
    if (fields == count) starts[fields] = stop + 1;
    return fields;
}

bel_csv_stop bel_csv_split_row(const char *row, const char *end, char delimiter, int count,
                               const char **starts, const char **out_fault)
{
    const char *line = memchr(row, '\n', (size_t)(end - row));
    const char *stop = line != NULL ? line : end;
    if (memchr(row, '"', (size_t)(stop - row)) == NULL) {
        size_t room = (size_t)(end - stop);
        if (stop > row && stop[-1] == '\r') stop--;
        *out_fault = stop;
        int fields = split_plain(row, stop, room, delimiter, count, starts);
        return fields < count ? BEL_CSV_SHORT_ROW : BEL_CSV_ROW_END;
    }
    bel_csv_stop found = BEL_CSV_DELIMITER;
    const char *at = row;
    for (int i = 0; i < count; i++) {
        bel_csv_field field;
        starts[i] = *out_fault = at;
        if (found == BEL_CSV_ROW_END) return BEL_CSV_SHORT_ROW;
        found = bel_csv_next_field(at, end, delimiter, &field, &at);
        if (found > BEL_CSV_ROW_END) {
            *out_fault = at;
            return found;
        }
        bool quoted = field.text != starts[i];
        starts[i + 1] = field.text + field.length + quoted + 1;
    }
    return BEL_CSV_ROW_END;
}

bel_csv_field bel_csv_field_between(const char *start, const char *next)
{
    bel_csv_field field = {.text = start, .length = (size_t)(next - 1 - start)};
    if (field.length < 2 || *start != '"') return field;
    field.text++;
    field.length -= 2;
    field.doubled = memchr(field.text, '"', field.length) != NULL;
    return field;
}

const char *bel_csv_fault_text(bel_csv_stop stop)
{
    switch (stop) {
    case BEL_CSV_OPEN_QUOTE: return "expected a closing quote, got the end of the file";
    case BEL_CSV_STRAY_QUOTE:
        return "expected no quote inside an unquoted field (quote the field and double the quote)";
    case BEL_CSV_AFTER_QUOTE:
        return "expected a delimiter or the end of the line after the closing quote";
    case BEL_CSV_SHORT_ROW: return "expected more fields, got the end of the row";
    case BEL_CSV_DELIMITER:
    case BEL_CSV_ROW_END: break;
    }
    return "nothing wrong";
}

size_t bel_csv_value_length(const bel_csv_field *field)
{
    size_t length = field->length;
    if (!field->doubled) return length;
    for (size_t i = 0; i < field->length; i++) {
        if (field->text[i] != '"') continue;
        length--;
        i++; // its twin
    }
    return length;
}

void bel_csv_copy_value(const bel_csv_field *field, char *out_value)
{
    if (!field->doubled) {
        memcpy(out_value, field->text, field->length);
        return;
    }
    for (size_t i = 0; i < field->length; i++) {
        *out_value++ = field->text[i];
        if (field->text[i] == '"') i++;
    }
}
