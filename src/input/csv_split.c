// Quotes protect delimiters, line breaks and doubled quotes, and only where a field begins with
// one; a quote anywhere else is a fault and is not guessed at. A carriage return ends a row only
// before a line feed or the end of the text; alone it is text.
//
// A field is a pointer into the file's text, which has no zero byte behind it: nothing here
// reads at or behind `end`. Values with doubled quotes are made when they are asked for, as
// hardly any field has them.
#include "input/csv_split.h"

#include <string.h>

bool bel_csv_is_row_end(const char *at, const char *end)
{
    if (at == end || *at == '\n') return true;
    return *at == '\r' && (at + 1 == end || at[1] == '\n');
}

// `at` is a row end; the next row begins behind it.
static const char *skip_row_end(const char *at, const char *end)
{
    if (at < end && *at == '\r') at++;
    if (at < end && *at == '\n') at++;
    return at;
}

// A field that begins with a quote ends at the first one that is not doubled; then the row or the
// field must end, too. `out_field` is what is between the quotes, with doubled ones as they are.
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
    // A carriage return alone is text; only before a line feed or the end does it end the row.
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

const char *bel_csv_fault_text(bel_csv_stop stop)
{
    switch (stop) {
    case BEL_CSV_OPEN_QUOTE: return "expected a closing quote, got the end of the file";
    case BEL_CSV_STRAY_QUOTE:
        return "expected no quote inside an unquoted field (quote the field and double the quote)";
    case BEL_CSV_AFTER_QUOTE:
        return "expected a delimiter or the end of the line behind the closing quote";
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
