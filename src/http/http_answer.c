// Appends texts one by one: printf would read a format for each answer. Status line, fields and
// body are one run of bytes, so that one write sends a small answer. Nothing is escaped here:
// `head` has whole fields with their line ends, and other texts have none.
#include "http/http_answer.h"

static const char *phrase_of(int code)
{
    static const struct {
        int code;
        const char *phrase;
    } phrases[] = {{200, "OK"},
                   {400, "Bad Request"},
                   {401, "Unauthorized"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {408, "Request Timeout"},
                   {413, "Content Too Large"},
                   {417, "Expectation Failed"},
                   {429, "Too Many Requests"},
                   {431, "Request Header Fields Too Large"},
                   {500, "Internal Server Error"},
                   {501, "Not Implemented"},
                   {503, "Service Unavailable"},
                   {504, "Gateway Timeout"},
                   {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (phrases[i].code == code) return phrases[i].phrase;
    return "Unknown";
}

void bel_http_answer_put(bel_str *out, const bel_http_answer *answer, const char *connection,
                         bool without_body)
{
    bel_str_puts(out, "HTTP/1.1 ");
    bel_str_put_i64(out, answer->code);
    bel_str_puts(out, " ");
    bel_str_puts(out, phrase_of(answer->code));
    bel_str_puts(out, "\r\nContent-Type: ");
    bel_str_puts(out, answer->type);
    bel_str_puts(out, "\r\nContent-Length: ");
    bel_str_put_i64(out, (int64_t)answer->body.length);
    bel_str_puts(out, "\r\nCache-Control: no-cache\r\n");
    if (connection != NULL) {
        bel_str_puts(out, "Connection: ");
        bel_str_puts(out, connection);
        bel_str_puts(out, "\r\n");
    }
    if (answer->head.length > 0) bel_str_append(out, answer->head.text, answer->head.length);
    bel_str_puts(out, "\r\n");
    if (!without_body && answer->body.length > 0)
        bel_str_append(out, answer->body.text, answer->body.length);
}
