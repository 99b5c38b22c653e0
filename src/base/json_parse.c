// JSON texts as values (RFC 8259), in one pass. Elements and members are collected on a stack, and
// copied to the arena when their list or object ends, so that they are adjacent. Names must differ,
// a text has no zero character, and an integer has 64 bits: a reader could take another value
// otherwise.
//
// Memory: a value has 16 bytes on the stack and 16 in the arena, a member of many a pointer more, a
// text a multiple of 16. The stack grows by STEP values at most. The worst text is the name "" many
// times: a member of 5 bytes ("":0,) needs 88. So 18 times the text's bytes suffice, and 16 MiB.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/decimal.h"
#include "base/json_value.h"
#include "base/number.h"
#include "base/str.h"

enum { MOST_DEPTH = 2048, FIRST = 64, STEP = 1 << 20 };

typedef struct parser {
    const char *at, *end;
    bel_arena *arena;
    bel_json_value *stack, first[FIRST]; // the stack begins in `first`
    size_t used, capacity;
    int depth;
    const char *expected;        // why the text is not valid
    const bel_json_value *twice; // or a name that comes twice
} parser;

// Notes what was expected at the next byte.
static bool expected(parser *p, const char *what)
{
    p->expected = what;
    return false;
}

static inline void skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\r' || *p->at == '\t'))
        p->at++;
}

static inline bool next_is(const parser *p, char c)
{
    return p->at < p->end && *p->at == c;
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// --- Numbers and words --------------------------------------------------------------------------

static bool parse_real(parser *p, const char *first, bel_json_value *out)
{
    if (next_is(p, '.') && (p->end - p->at < 2 || !is_digit(p->at[1]))) {
        p->at++;
        return expected(p, "a digit");
    }
    double real = 0;
    const char *stop = bel_decimal_parse(first, p->end, &real);
    if (stop == NULL) return expected(p, "a number that a double can hold");
    p->at = stop; // before an e without digits, which is then refused
    *out = (bel_json_value){.kind = BEL_JSON_REAL, .real = real};
    return true;
}

static inline bool parse_number(parser *p, bel_json_value *out)
{
    enum { MOST_DIGITS = 19 };
    const char *first = p->at, *digits = first + (*first == '-'), *at = digits;
    uint64_t whole = 0; // wraps with more than 19 digits
    for (; at < p->end && is_digit(*at); at++)
        whole = whole * 10 + (uint64_t)(*at - '0');
    p->at = at;
    if (at == digits) return expected(p, "a digit");
    if (*digits == '0' && at - digits > 1) {
        p->at = digits + 1;
        return expected(p, "no zero before a number");
    }
    if (at < p->end && (*at == '.' || *at == 'e' || *at == 'E')) return parse_real(p, first, out);
    const bool negative = digits != first;
    if (at - digits > MOST_DIGITS || whole > (uint64_t)INT64_MAX + negative)
        return expected(p, "an integer of 64 bits");
    *out = (bel_json_value){.kind = BEL_JSON_INTEGER,
                            .integer = (int64_t)(negative ? 0 - whole : whole)};
    return true;
}

static bool parse_word(parser *p, const char *word, bel_json_kind kind, bel_json_value *out)
{
    for (; *word != '\0'; word++, p->at++)
        if (!next_is(p, *word)) return expected(p, "true, false or null");
    *out = (bel_json_value){.kind = kind};
    return true;
}

// --- Texts --------------------------------------------------------------------------------------

static int hex_digit(char c)
{
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Parses the four digits after \u.
static bool parse_unit(parser *p, uint32_t *out_unit)
{
    *out_unit = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        int digit = p->at < p->end ? hex_digit(*p->at) : -1;
        if (digit < 0) return expected(p, "four hexadecimal digits");
        *out_unit = *out_unit * 16 + (uint32_t)digit;
    }
    return true;
}

static char *put_utf8(uint32_t c, char *to)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char leads[] = {0, 0xC0, 0xE0, 0xF0};
    *to++ = (char)(leads[more] | c >> 6 * more);
    while (more-- > 0)
        *to++ = (char)(0x80 | (c >> 6 * more & 0x3F));
    return to;
}

// Parses the character after \u, which may be two units.
static bool parse_escaped_unit(parser *p, char **to)
{
    uint32_t unit, low;
    if (!parse_unit(p, &unit)) return false;
    if (unit == 0) return expected(p, "no zero character");
    if (unit >= 0xD800 && unit < 0xE000) {
        bool pair = unit < 0xDC00 && p->end - p->at >= 2 && memcmp(p->at, "\\u", 2) == 0;
        if (!pair) return expected(p, "the second half of a character");
        p->at += 2;
        if (!parse_unit(p, &low)) return false;
        if (low < 0xDC00 || low >= 0xE000) return expected(p, "the second half of a character");
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    *to = put_utf8(unit, *to);
    return true;
}

static bool parse_escape(parser *p, char **to)
{
    static const char names[] = "\"\\/bfnrt", characters[] = "\"\\/\b\f\n\r\t";
    const char *found = *p->at != '\0' ? strchr(names, *p->at) : NULL;
    if (*p->at == 'u') {
        p->at++;
        return parse_escaped_unit(p, to);
    }
    if (found == NULL) return expected(p, "an escape");
    p->at++;
    *(*to)++ = characters[found - names];
    return true;
}

static inline bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

// Returns the quotation mark that ends the text from `at` on; NULL: none.
static const char *find_quote(const char *at, const char *end)
{
    while (at < end && *at != '"')
        at += *at == '\\' && end - at > 1 ? 2 : 1;
    return at < end ? at : NULL;
}

// Parses a text with escapes or characters of several bytes, from its first one on. An escape is
// longer than its character, so the text's bytes are enough.
static bool parse_rich(parser *p, const char *first, bel_json_value *out)
{
    const char *quote = find_quote(p->at, p->end);
    size_t before = (size_t)(p->at - first);
    if (quote == NULL) {
        p->at = p->end;
        return expected(p, "a quotation mark");
    }
    char *text = bel_arena_alloc(p->arena, (size_t)(quote - first) + 1), *to = text;
    memcpy(to, first, before);
    for (to += before; p->at < quote;) {
        int bytes = bel_utf8_bytes(p->at); // no more than up to the quotation mark
        if ((unsigned char)*p->at < 0x20) return expected(p, "an escape for a control character");
        if (bytes == 0) return expected(p, "UTF-8");
        if (*p->at == '\\') {
            p->at++;
            if (!parse_escape(p, &to)) return false;
            continue;
        }
        memcpy(to, p->at, (size_t)bytes);
        to += bytes;
        p->at += bytes;
    }
    p->at++;
    *out = (bel_json_value){.kind = BEL_JSON_TEXT, .count = (uint32_t)(to - text), .text = text};
    return true;
}

static bool parse_text(parser *p, bel_json_value *out)
{
    const char *first = ++p->at;
    while (p->at < p->end && is_plain(*p->at))
        p->at++;
    if (!next_is(p, '"')) return parse_rich(p, first, out);
    size_t length = (size_t)(p->at - first);
    char *text = bel_arena_alloc(p->arena, length + 1);
    memcpy(text, first, length);
    p->at++;
    *out = (bel_json_value){.kind = BEL_JSON_TEXT, .count = (uint32_t)length, .text = text};
    return true;
}

// --- Lists and objects --------------------------------------------------------------------------

static bool parse_value(parser *p, bel_json_value *out);

static void grow(parser *p)
{
    size_t grown = p->capacity + (p->capacity < STEP ? p->capacity : STEP);
    bool moves = p->stack != p->first;
    p->stack = bel_xrealloc(moves ? p->stack : NULL, grown * sizeof *p->stack);
    if (!moves) memcpy(p->stack, p->first, sizeof p->first);
    p->capacity = grown;
}

static inline void push(parser *p, const bel_json_value *value)
{
    if (p->used == p->capacity) grow(p);
    p->stack[p->used++] = *value;
}

// Moves the values from `base` on to the arena, with `beside` bytes more.
static bel_json_value *pop_items(parser *p, size_t base, size_t beside)
{
    size_t size = (p->used - base) * sizeof *p->stack;
    bel_json_value *items = bel_arena_alloc(p->arena, size + beside);
    if (size > 0) memcpy(items, p->stack + base, size);
    p->used = base;
    return items;
}

static bool enter(parser *p)
{
    if (++p->depth > MOST_DEPTH) return expected(p, "fewer lists and objects in each other");
    p->at++;
    skip_space(p);
    return true;
}

// After an element or a member: more of them, or the end.
static inline bool parse_more(parser *p, char close, bool *out_more)
{
    skip_space(p);
    *out_more = next_is(p, ',');
    if (!*out_more && !next_is(p, close))
        return expected(p, close == ']' ? "',' or ']'" : "',' or '}'");
    p->at++;
    if (*out_more) skip_space(p);
    return true;
}

static bool parse_list(parser *p, bel_json_value *out)
{
    const size_t base = p->used;
    bel_json_value item;
    if (!enter(p)) return false;
    bool more = !next_is(p, ']');
    if (!more) p->at++;
    while (more) {
        if (!parse_value(p, &item)) return false;
        push(p, &item);
        if (!parse_more(p, ']', &more)) return false;
    }
    const uint32_t count = (uint32_t)(p->used - base);
    const bel_json_value *items = pop_items(p, base, 0);
    p->depth--;
    *out = (bel_json_value){.kind = BEL_JSON_LIST, .count = count, .items = items};
    return true;
}

int bel_json_compare(const bel_json_value *a, const bel_json_value *b)
{
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    return memcmp(a->text, b->text, a->count);
}

static int compare_names(const void *a, const void *b)
{
    const bel_json_value *const *x = a, *const *y = b;
    return bel_json_compare(*x, *y);
}

// Sorts many names, and compares neighbors; compares few names in pairs.
static bool check_names(parser *p, bel_json_value *items, uint32_t count)
{
    if (count <= BEL_JSON_FEW) {
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t j = 0; j < i; j++)
                if (bel_json_compare(&items[2 * i], &items[2 * j]) == 0) p->twice = &items[2 * i];
    } else {
        const bel_json_value **names = (const bel_json_value **)(void *)(items + 2 * count);
        for (uint32_t i = 0; i < count; i++)
            names[i] = &items[2 * i];
        qsort(names, count, sizeof *names, compare_names);
        for (uint32_t i = 1; i < count; i++)
            if (bel_json_compare(names[i - 1], names[i]) == 0) p->twice = names[i];
    }
    if (p->twice != NULL) p->at--; // to the object's end
    return p->twice == NULL;
}

static bool parse_member(parser *p)
{
    bel_json_value name, value;
    if (!next_is(p, '"')) return expected(p, "a name in quotation marks");
    if (!parse_text(p, &name)) return false;
    skip_space(p);
    if (!next_is(p, ':')) return expected(p, "':'");
    p->at++;
    skip_space(p);
    if (!parse_value(p, &value)) return false;
    push(p, &name);
    push(p, &value);
    return true;
}

static bool parse_object(parser *p, bel_json_value *out)
{
    const size_t base = p->used;
    if (!enter(p)) return false;
    bool more = !next_is(p, '}');
    if (!more) p->at++;
    while (more)
        if (!parse_member(p) || !parse_more(p, '}', &more)) return false;
    const uint32_t count = (uint32_t)((p->used - base) / 2);
    const size_t order = count > BEL_JSON_FEW ? count * sizeof(bel_json_value *) : 0;
    bel_json_value *items = pop_items(p, base, order);
    p->depth--;
    *out = (bel_json_value){.kind = BEL_JSON_OBJECT, .count = count, .items = items};
    return check_names(p, items, count);
}

static bool parse_value(parser *p, bel_json_value *out)
{
    char c = p->at < p->end ? *p->at : '\0';
    if (is_digit(c) || c == '-') return parse_number(p, out);
    switch (c) {
    case '[': return parse_list(p, out);
    case '{': return parse_object(p, out);
    case '"': return parse_text(p, out);
    case 't': return parse_word(p, "true", BEL_JSON_TRUE, out);
    case 'f': return parse_word(p, "false", BEL_JSON_FALSE, out);
    case 'n': return parse_word(p, "null", BEL_JSON_NULL, out);
    default: return expected(p, "a value");
    }
}

// --- Documents ----------------------------------------------------------------------------------

static bool parse_document(parser *p, bel_json_value *out)
{
    skip_space(p);
    if (!parse_value(p, out)) return false;
    if (out->kind != BEL_JSON_LIST && out->kind != BEL_JSON_OBJECT) {
        p->at--; // the place is that of its last character
        return expected(p, "an object or a list");
    }
    skip_space(p);
    return p->at == p->end || expected(p, "the end");
}

static bel_status *complain_twice(const bel_json_value *name, const char *source, long long line,
                                  long long column)
{
    enum { MOST_SHOWN = 40 };
    char shown[MOST_SHOWN + 1];
    size_t length = name->count < MOST_SHOWN ? name->count : MOST_SHOWN;
    while (length < name->count && ((unsigned char)name->text[length] & 0xC0) == 0x80)
        length--; // no part of a character
    memcpy(shown, name->text, length);
    shown[length] = '\0';
    bel_str text = {0};
    bel_json_write_string(&text, shown);
    bel_status *status = BEL_ERR(BEL_DATA_LOSS,
                                 "%s:%lld:%lld: not valid JSON: expected each name once, got the "
                                 "duplicate %s",
                                 source, line, column, text.text);
    bel_str_deinit(&text);
    return status;
}

// Names the place: the characters of the line up to the wrong one, itself included.
static bel_status *complain(const parser *p, const char *text, const char *source, bool is_secret)
{
    const bool ends = p->at == p->end;
    const size_t count = (size_t)(p->at - text) + !ends;
    long long line = 1, column = 0;
    char got[16] = "the end";
    for (size_t i = 0; i < count; i++) {
        column += ((unsigned char)text[i] & 0xC0) != 0x80; // characters, not bytes
        if (text[i] != '\n' || (!ends && i + 1 == count)) continue;
        line++;
        column = 0;
    }
    if (!ends && *p->at > ' ' && *p->at < 0x7f) {
        bel_snprintf(got, sizeof got, "'%c'", *p->at);
    } else if (!ends) {
        bel_snprintf(got, sizeof got, "byte 0x%02x", (unsigned)(unsigned char)*p->at);
    }
    if (is_secret)
        return BEL_ERR(BEL_DATA_LOSS, "%s:%lld:%lld: not valid JSON", source, line, column);
    if (p->twice != NULL) return complain_twice(p->twice, source, line, column);
    return BEL_ERR(BEL_DATA_LOSS, "%s:%lld:%lld: not valid JSON: expected %s, got %s", source, line,
                   column, p->expected, got);
}

bel_status *bel_json_parse_values(bel_arena *arena, const char *text, size_t length,
                                  const char *source, bool is_secret,
                                  const bel_json_value **out_root)
{
    if (length >= UINT32_MAX)
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected JSON of less than 4 GiB, got %zu bytes", source,
                       length);
    parser p = {.at = text, .end = text + length, .arena = arena, .capacity = FIRST};
    p.stack = p.first;
    bel_json_value root;
    bel_status *status = NULL;
    if (parse_document(&p, &root)) {
        *out_root = bel_arena_copy(arena, &root, sizeof root);
    } else {
        status = complain(&p, text, source, is_secret);
    }
    if (p.stack != p.first) bel_free(p.stack);
    return status;
}
