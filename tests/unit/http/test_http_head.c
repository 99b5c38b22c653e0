// Heads of HTTP requests: what is accepted, and what has a code instead.
#include "http/http_head.h"

#include <string.h>

#include "base/str.h"
#include "support/bel_test.h"

static int parse(const char *text, bel_http_head *head)
{
    static char copy[BEL_HTTP_HEAD_BYTES];
    const char *message = NULL;
    size_t size = bel_http_head_size(text, strlen(text), 0);
    assert_int_equal(size, strlen(text));
    memcpy(copy, text, size);
    int code = bel_http_head_parse(copy, size, head, &message);
    assert_true(code == 0 || message != NULL);
    return code;
}

static void test_parts(void **state)
{
    (void)state;
    bel_http_head head;
    assert_int_equal(parse("POST /v2/x?q=1 HTTP/1.1\r\nHost: a\r\ncontent-LENGTH:  12 \r\n"
                           "X-Empty:\r\nConnection: TE, close\r\nExpect: 100-Continue\r\n\r\n",
                           &head),
                     0);
    assert_string_equal(head.method, "POST");
    assert_string_equal(head.target, "/v2/x?q=1");
    assert_int_equal(head.content_length, 12);
    assert_false(head.keeps);
    assert_true(head.awaits_continue);
    assert_string_equal(bel_http_head_find(&head, "host"), "a");
    assert_string_equal(bel_http_head_find(&head, "x-empty"), "");
    assert_null(bel_http_head_find(&head, "X"));
    assert_int_equal(parse("GET / HTTP/1.0\r\n\r\n", &head), 0);
    assert_false(head.keeps);
    assert_int_equal(
        parse("GET / HTTP/1.0\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n", &head), 0);
    assert_false(head.keeps);
    assert_int_equal(parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &head), 0);
    assert_true(head.keeps);
    assert_int_equal(parse("GET / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n", &head), 0);
    assert_true(head.keeps && head.is_chunked);
}

// The size is found when the last byte comes, wherever the pieces end.
static void test_pieces(void **state)
{
    (void)state;
    static const char text[] = "GET / HTTP/1.1\r\nA: b\r\n\r\nrest";
    size_t head = strlen(text) - 4;
    for (size_t first = 0; first < head; first++) {
        assert_int_equal(bel_http_head_size(text, first, 0), 0);
        for (size_t second = first; second < head; second++)
            assert_int_equal(bel_http_head_size(text, second, first), 0);
        assert_int_equal(bel_http_head_size(text, sizeof text - 1, first), head);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *text;
    } cases[] = {
        {400, "nonsense\r\n\r\n"},
        {400, "GET  / HTTP/1.1\r\n\r\n"},
        {505, "GET / HTTP/1.1 \r\n\r\n"},
        {400, "G\tT / HTTP/1.1\r\n\r\n"},
        {400, "GET /\x01 HTTP/1.1\r\n\r\n"},
        {400, "GET / FTP/1.1\r\n\r\n"},
        {505, "GET / HTTP/2.0\r\n\r\n"},
        {505, "GET / HTTP/1.1x\r\n\r\n"},
        {400, "GET / HTTP/1.1\nHost: a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a\nB: c\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n folded: a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n: a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
        {417, "POST / HTTP/1.1\r\nExpect: a cake\r\n\r\n"},
    };
    bel_http_head head;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (parse(cases[i].text, &head) != cases[i].code) fail_msg("%s", cases[i].text);
}

static void test_many_fields(void **state)
{
    (void)state;
    bel_str text = {0};
    bel_http_head head;
    bel_str_puts(&text, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < BEL_HTTP_HEAD_FIELDS; i++)
        bel_str_puts(&text, "A: b\r\n");
    size_t length = text.length;
    bel_str_puts(&text, "\r\n");
    assert_int_equal(parse(text.text, &head), 0);
    text.length = length;
    bel_str_puts(&text, "A: b\r\n\r\n");
    assert_int_equal(parse(text.text, &head), 431);
    bel_str_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_many_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
