// Reader of XML: see xml.h. One pass over the text with a stack of open elements.
#include "store/xml.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

typedef struct reader {
    const char *text, *at, *end;
    bel_str path;
    size_t starts[BEL_XML_DEPTH]; // offsets of the elements' names in `path`
    bel_str texts[BEL_XML_DEPTH];
    int depth;
    bel_xml_visit *visit;
    void *context;
} reader;

static bel_status *reader_fail(const reader *r, const char *what)
{
    return BEL_ERR(BEL_DATA_LOSS, "malformed XML at byte %zu: %s", (size_t)(r->at - r->text), what);
}

// Moves after the next `mark`, which must come.
static bel_status *skip_past(reader *r, const char *mark, const char *what)
{
    size_t length = strlen(mark);
    for (const char *at = r->at; (size_t)(r->end - at) >= length; at++) {
        if (memcmp(at, mark, length) != 0) continue;
        r->at = at + length;
        return NULL;
    }
    return reader_fail(r, what);
}

static void put_utf8(bel_str *out, uint32_t code)
{
    char bytes[4];
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = count - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    bytes[0] = (char)(marks[count] | code);
    bel_str_append(out, bytes, count);
}

// A number of a character: "38" or "x26".
static bel_status *put_number(reader *r, bel_str *out, const char *digits, size_t length)
{
    uint32_t base = 10, code = 0;
    if (length > 0 && digits[0] == 'x') {
        base = 16;
        digits++;
        length--;
    }
    bool good = length > 0 && length <= 7;
    for (size_t i = 0; i < length && good; i++) {
        char c = digits[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 99;
        good = digit < base;
        code = code * base + digit;
    }
    if (!good || code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return reader_fail(r, "expected the number of a character");
    put_utf8(out, code);
    return NULL;
}

// Text up to the next tag.
static bel_status *read_text(reader *r)
{
    static const struct {
        const char *name, *text;
    } entities[] = {{"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"apos", "'"}};
    bel_str outside = {0};
    bel_str *out = r->depth > 0 ? &r->texts[r->depth - 1] : &outside;
    bel_status *status = NULL;
    while (r->at < r->end && *r->at != '<' && status == NULL) {
        const char *from = r->at;
        if (*from != '&') {
            while (r->at < r->end && *r->at != '<' && *r->at != '&' && *r->at != '\0')
                r->at++;
            if (r->at == from) status = reader_fail(r, "a zero byte");
            bel_str_append(out, from, (size_t)(r->at - from));
            continue;
        }
        const char *close = memchr(from, ';', (size_t)(r->end - from));
        size_t length = close != NULL ? (size_t)(close - from - 1) : 0, i = 0;
        if (length == 0 || length > 8) {
            status = reader_fail(r, "expected an entity");
        } else if (from[1] == '#') {
            status = put_number(r, out, from + 2, length - 1);
        } else {
            while (i < 5 && (strlen(entities[i].name) != length ||
                             memcmp(entities[i].name, from + 1, length) != 0))
                i++;
            if (i == 5)
                status = reader_fail(r, "an unknown entity");
            else
                bel_str_puts(out, entities[i].text);
        }
        r->at = close != NULL ? close + 1 : r->end;
    }
    bool blank =
        outside.length == 0 || strspn(outside.text, " \t\r\n\xef\xbb\xbf") == outside.length;
    if (status == NULL && !blank) status = reader_fail(r, "text outside of elements");
    bel_str_deinit(&outside);
    return status;
}

// Reads a name, and cuts its prefix off.
static bel_status *read_name(reader *r, const char **out_name, size_t *out_length)
{
    const char *from = r->at;
    while (r->at < r->end && strchr(" \t\r\n/>", *r->at) == NULL) {
        if (strchr("<&\"'=", *r->at) != NULL) return reader_fail(r, "expected a name");
        r->at++;
    }
    const char *colon = memchr(from, ':', (size_t)(r->at - from));
    if (colon != NULL) from = colon + 1;
    if (r->at == from || r->at - from >= BEL_XML_NAME_BYTES)
        return reader_fail(r, "expected a name of 1 to 63 bytes");
    *out_name = from;
    *out_length = (size_t)(r->at - from);
    return NULL;
}

static void close_element(reader *r)
{
    bel_str *text = &r->texts[r->depth - 1];
    r->visit(r->context, r->path.text, text->text != NULL ? text->text : "");
    r->path.length = r->starts[--r->depth];
    if (r->path.length > 0) r->path.length--; // the slash
    r->path.text[r->path.length] = '\0';
    bel_str_deinit(text);
}

static bel_status *read_open(reader *r)
{
    const char *name;
    size_t length;
    BEL_TRY(read_name(r, &name, &length));
    if (r->depth == BEL_XML_DEPTH) return reader_fail(r, "elements too deep");
    if (r->path.length > 0) bel_str_puts(&r->path, "/");
    r->starts[r->depth++] = r->path.length;
    bel_str_append(&r->path, name, length);
    while (r->at < r->end && *r->at != '>') { // attributes
        char c = *r->at++;
        if (c == '"' || c == '\'') BEL_TRY(skip_past(r, (char[]){c, '\0'}, "an open quote"));
        if (c == '<') return reader_fail(r, "expected the end of a tag");
        if (c == '/' && r->at < r->end && *r->at == '>') {
            close_element(r);
            break;
        }
    }
    if (r->at == r->end) return reader_fail(r, "expected the end of a tag");
    r->at++;
    return NULL;
}

static bel_status *read_close(reader *r)
{
    const char *name;
    size_t length;
    BEL_TRY(read_name(r, &name, &length));
    const char *open = r->depth > 0 ? r->path.text + r->starts[r->depth - 1] : "";
    if (strlen(open) != length || memcmp(open, name, length) != 0)
        return reader_fail(r, "expected the end of another element");
    while (r->at < r->end && strchr(" \t\r\n", *r->at) != NULL && *r->at != '\0')
        r->at++;
    if (r->at == r->end || *r->at != '>') return reader_fail(r, "expected \">\"");
    r->at++;
    close_element(r);
    return NULL;
}

static bel_status *read_cdata(reader *r)
{
    const char *from = r->at;
    BEL_TRY(skip_past(r, "]]>", "expected \"]]>\""));
    if (r->depth == 0) return reader_fail(r, "text outside of elements");
    if (memchr(from, '\0', (size_t)(r->at - from)) != NULL) return reader_fail(r, "a zero byte");
    bel_str_append(&r->texts[r->depth - 1], from, (size_t)(r->at - from) - 3);
    return NULL;
}

static bool begins(const reader *r, const char *with)
{
    size_t length = strlen(with);
    return (size_t)(r->end - r->at) >= length && memcmp(r->at, with, length) == 0;
}

static bel_status *read_all(reader *r)
{
    int roots = 0;
    while (r->at < r->end) {
        if (*r->at != '<') {
            BEL_TRY(read_text(r));
        } else if (begins(r, "<?")) {
            BEL_TRY(skip_past(r, "?>", "expected \"?>\""));
        } else if (begins(r, "<!--")) {
            BEL_TRY(skip_past(r, "-->", "expected \"-->\""));
        } else if (begins(r, "<![CDATA[")) {
            r->at += 9;
            BEL_TRY(read_cdata(r));
        } else if (begins(r, "<!")) {
            return reader_fail(r, "document types are refused");
        } else if (begins(r, "</")) {
            r->at += 2;
            BEL_TRY(read_close(r));
        } else {
            if (r->depth == 0 && roots++ > 0) return reader_fail(r, "a second root");
            r->at++;
            BEL_TRY(read_open(r));
        }
    }
    if (r->depth > 0 || roots == 0) return reader_fail(r, "it ends early");
    return NULL;
}

bel_status *bel_xml_read(const char *text, size_t size, bel_xml_visit *visit, void *context)
{
    reader r = {.text = text, .at = text, .end = text + size, .visit = visit, .context = context};
    bel_str_puts(&r.path, "");
    bel_status *status = read_all(&r);
    for (int i = 0; i < r.depth; i++)
        bel_str_deinit(&r.texts[i]);
    bel_str_deinit(&r.path);
    return status;
}
