// Lines end with CR LF. A line feed without a carriage return, white space before a colon, and
// folded lines are refused: proxies differ in how they read them. A head is parsed in place, so its
// fields point into the bytes that the caller keeps.
#include "http/http_head.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"

static bool is_token(const char *text)
{
    static const char accepted[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *at = text;
    while ((*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z') || *at == '-') // usual names
        at++;
    return text[0] != '\0' && (*at == '\0' || at[strspn(at, accepted)] == '\0');
}

size_t bel_http_head_size(const char *text, size_t size, size_t from)
{
    enum { OVERLAP = 3 }; // bytes of the end that an earlier call may have seen
    for (size_t at = from > OVERLAP ? from - OVERLAP : 0; at < size;) {
        const char *found = memchr(text + at, '\n', size - at);
        if (found == NULL) return 0;
        size_t end = (size_t)(found - text) + 1;
        if (end >= 4 && memcmp(found - 3, "\r\n\r\n", 4) == 0) return end;
        at = end;
    }
    return 0;
}

// Cuts off a line, which ends with CR LF and has no other control characters than tabs. NULL: it is
// another one. *at moves to the next line.
static char *take_line(char **at, const char *end)
{
    char *line = *at, *found = memchr(line, '\n', (size_t)(end - line));
    if (found == NULL || found == line || found[-1] != '\r') return NULL;
    for (const char *c = line; c < found - 1; c++)
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f) return NULL;
    found[-1] = '\0';
    *at = found + 1;
    return line;
}

// Returns 0, or a code.
static int parse_first_line(char *line, bel_http_head *head, const char **out_message)
{
    char *target = strchr(line, ' '), *version = target != NULL ? strchr(target + 1, ' ') : NULL;
    *out_message = "expected a method, a path and HTTP/1.1";
    if (version == NULL) return 400;
    *target++ = '\0';
    *version++ = '\0';
    if (!is_token(line) || target[0] == '\0') return 400;
    head->method = line;
    head->target = target;
    head->keeps = strcmp(version, "HTTP/1.1") == 0;
    head->is_old = strcmp(version, "HTTP/1.0") == 0;
    if (head->keeps || head->is_old) return 0;
    *out_message = "expected HTTP/1.1 or HTTP/1.0";
    return strncmp(version, "HTTP/", 5) == 0 ? 505 : 400;
}

// Parses a line "name: value" without the white space around the value.
static bool parse_field(char *line, bel_http_field *out_field)
{
    char *colon = strchr(line, ':');
    if (colon == NULL) return false;
    *colon = '\0';
    char *value = colon + 1 + strspn(colon + 1, " \t"), *end = value + strlen(value);
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
    *out_field = (bel_http_field){line, value};
    return is_token(line);
}

// True if a list of words separated by commas has this one.
static bool lists(const char *list, const char *word)
{
    size_t length = strlen(word);
    while (*list != '\0') {
        list += strspn(list, ", \t");
        size_t size = strcspn(list, ", \t");
        if (size == length && strncasecmp(list, word, length) == 0) return true;
        list += size;
    }
    return false;
}

static bool parse_length(const char *text, uint64_t *out_length)
{
    int64_t number;
    size_t length = strlen(text);
    if (strspn(text, "0123456789") != length || !bel_parse_i64(text, length, &number)) return false;
    *out_length = (uint64_t)number;
    return true;
}

// Looks for the end of the body, and what becomes of the connection. Returns 0, or a code.
static int read_framing(bel_http_head *head, const char **out_message)
{
    int lengths = 0, encodings = 0;
    bool closes = false;
    for (int i = 0; i < head->field_count; i++) {
        const bel_http_field *f = &head->fields[i];
        if (strcasecmp(f->name, "Content-Length") == 0) {
            lengths += parse_length(f->value, &head->content_length) ? 1 : 2;
        } else if (strcasecmp(f->name, "Transfer-Encoding") == 0) {
            encodings++;
            head->is_chunked = strcasecmp(f->value, "chunked") == 0;
        } else if (strcasecmp(f->name, "Connection") == 0) {
            head->keeps = head->keeps || lists(f->value, "keep-alive");
            closes = closes || lists(f->value, "close"); // wins, whatever other fields say
        } else if (strcasecmp(f->name, "Expect") == 0) {
            head->awaits_continue = strcasecmp(f->value, "100-continue") == 0 && !head->is_old;
            *out_message = "expected no Expect but 100-continue";
            if (strcasecmp(f->value, "100-continue") != 0) return 417;
        }
    }
    if (closes) head->keeps = false;
    *out_message = "expected one Content-Length of digits, or Transfer-Encoding";
    if (lengths + encodings > 1 || (encodings > 0 && head->is_old)) return 400;
    *out_message = "expected no Transfer-Encoding but chunked";
    return encodings > 0 && !head->is_chunked ? 501 : 0;
}

int bel_http_head_parse(char *text, size_t size, bel_http_head *out_head, const char **out_message)
{
    char *at = text, *end = text + size - 2, *line = take_line(&at, end); // the last line is empty
    bel_http_head head = {0};
    *out_message = "expected lines of text that end with CR LF";
    int code = line != NULL ? parse_first_line(line, &head, out_message) : 400;
    while (code == 0 && at < end) {
        *out_message = "expected fewer than 64 header lines";
        if (head.field_count == BEL_HTTP_HEAD_FIELDS) return 431;
        *out_message = "expected header lines such as Host: name, which end with CR LF";
        line = take_line(&at, end);
        if (line == NULL || !parse_field(line, &head.fields[head.field_count++])) return 400;
    }
    if (code == 0) code = read_framing(&head, out_message);
    *out_head = head;
    return code;
}

const char *bel_http_head_find(const bel_http_head *head, const char *name)
{
    for (int i = 0; i < head->field_count; i++)
        if (strcasecmp(head->fields[i].name, name) == 0) return head->fields[i].value;
    return NULL;
}
