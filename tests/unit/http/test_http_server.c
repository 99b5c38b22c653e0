// HTTP server over sockets: bodies in pieces and in chunks, several requests on a connection, and
// the end. label: threads
#include "http/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "support/bel_test.h"

enum { TEXT = 4096 };

static void echo(void *user, const bel_http_request *request, bel_http_answer *answer)
{
    (void)user;
    bel_str_printf(&answer->body, "%s %s %zu:%s", request->method, request->path,
                   request->body_size, request->body);
}

static bel_http_config make_config(void)
{
    return (bel_http_config){.address = "127.0.0.1",
                             .what = "a test",
                             .hint = "none",
                             .connections = 4,
                             .keep_alive = true,
                             .timeout_ms = 20000,
                             .idle_ms = 20000,
                             .most_body = 1000,
                             .answer = echo};
}

static int connect_to(const bel_http_server *server)
{
    int file = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)bel_http_server_port(server))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(file >= 0);
    assert_int_equal(connect(file, (const struct sockaddr *)&address, sizeof address), 0);
    return file;
}

static void put(int file, const char *text)
{
    assert_int_equal(send(file, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

// Reads until the text ends with `end`, or the connection does.
static void read_until(int file, const char *end, char text[TEXT])
{
    size_t used = 0, length = strlen(end);
    text[0] = '\0';
    while (length == 0 || used < length || strcmp(text + used - length, end) != 0) {
        ssize_t got = read(file, text + used, TEXT - 1 - used);
        if (got <= 0) break;
        used += (size_t)got;
        text[used] = '\0';
    }
}

static void expect(int file, const char *request, const char *body)
{
    char text[TEXT];
    put(file, request);
    read_until(file, body, text);
    assert_non_null(strstr(text, body));
    assert_int_equal(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
}

static void test_bodies(void **state)
{
    (void)state;
    bel_http_server *server;
    bel_http_config config = make_config();
    char text[TEXT];
    config.connections = 32; // one that was closed counts until its thread sees it
    BEL_ASSERT_OK(bel_http_server_start(&config, &server));
    int file = connect_to(server);
    expect(file, "GET /a%20b?c HTTP/1.1\r\n\r\n", "GET /a b 0:");
    expect(file, "POST http://host/x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "POST /x 3:abc");
    put(file, "POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\n");
    put(file, "abc");
    expect(file, "def", "POST / 6:abcdef");
    put(file, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n");
    put(file, "A\r\n01234");
    expect(file, "56789\r\n0\r\nTrailer: x\r\n\r\n", "POST / 13:abc0123456789");
    // Two requests at once have two answers, and empty lines are no request.
    expect(file, "\r\nPOST /1 HTTP/1.1\r\nContent-Length: 1\r\n\r\naGET /2 HTTP/1.1\r\n\r\n",
           "GET /2 0:");
    put(file, "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
    read_until(file, "HTTP/1.1 100 Continue\r\n\r\n", text);
    expect(file, "x", "POST / 1:x");
    put(file, "GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    read_until(file, "GET /old 0:", text);
    assert_non_null(strstr(text, "\r\nConnection: keep-alive\r\n"));
    put(file, "POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n");
    read_until(file, "", text);
    assert_int_equal(strncmp(text, "HTTP/1.1 413 ", 13), 0);
    close(file);
    char large[1100] = "POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n"; // all at once
    size_t head = strlen(large);
    memset(large + head, 'x', 1001);
    file = connect_to(server);
    put(file, large);
    read_until(file, "", text);
    assert_int_equal(strncmp(text, "HTTP/1.1 413 ", 13), 0);
    close(file);
    static const char *const wrong[] = {"x\r\n", "\r\n", "3\r\nabcd\r\n", "3\nabc",
                                        "123456789\r\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        file = connect_to(server);
        put(file, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
        put(file, wrong[i]);
        read_until(file, "", text);
        assert_int_equal(strncmp(text, "HTTP/1.1 400 ", 13), 0);
        close(file);
    }
    file = connect_to(server);
    put(file, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3E9\r\n");
    read_until(file, "", text);
    assert_int_equal(strncmp(text, "HTTP/1.1 413 ", 13), 0);
    close(file);
    bel_http_server_stop(server);
}

// A connection above the limit is refused. It takes no other's place, also while it stays.
static void test_crowd(void **state)
{
    (void)state;
    enum { LIMIT = 4 };
    bel_http_server *server;
    const bel_http_config config = make_config();
    char text[TEXT];
    int kept[LIMIT];
    BEL_ASSERT_OK(bel_http_server_start(&config, &server));
    for (int i = 0; i < LIMIT; i++) {
        kept[i] = connect_to(server);
        expect(kept[i], "GET /a HTTP/1.1\r\n\r\n", "GET /a 0:");
    }
    int more = connect_to(server);
    for (int i = 0; i < LIMIT; i++)
        expect(kept[i], "GET /b HTTP/1.1\r\n\r\n", "GET /b 0:");
    put(more, "GET /c HTTP/1.1\r\n\r\n");
    read_until(more, "", text);
    assert_int_equal(strncmp(text, "HTTP/1.1 503 ", 13), 0);
    for (int i = 0; i < LIMIT; i++)
        expect(kept[i], "GET /d HTTP/1.1\r\n\r\n", "GET /d 0:");
    for (int i = 0; i < LIMIT; i++)
        close(kept[i]);
    close(more);
    bel_http_server_stop(server);
}

static bool accepts(void *user, const bel_http_request *request, bel_http_answer *answer)
{
    (void)user;
    assert_int_equal(request->body_size, 0);
    answer->code = 401;
    return strcmp(request->path, "/no") != 0;
}

// A request that its head refuses is answered before its body comes.
static void test_refusal_by_head(void **state)
{
    (void)state;
    bel_http_server *server;
    bel_http_config config = make_config();
    char text[TEXT];
    config.accepts = accepts;
    BEL_ASSERT_OK(bel_http_server_start(&config, &server));
    int file = connect_to(server);
    put(file, "GET /no HTTP/1.1\r\n\r\n");
    read_until(file, "\r\n\r\n", text);
    assert_int_equal(strncmp(text, "HTTP/1.1 401 ", 13), 0);
    expect(file, "POST /yes HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "POST /yes 1:x");
    put(file, "POST /no HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n");
    read_until(file, "", text);
    assert_int_equal(strncmp(text, "HTTP/1.1 401 ", 13), 0);
    close(file);
    bel_http_server_stop(server);
}

static void *drain(void *server)
{
    return bel_http_server_drain(server, 20000) == 0 ? NULL : server;
}

// A request that has begun, and one that comes on an idle connection right after the drain began,
// are answered; then the connections end.
static void test_drain(void **state)
{
    (void)state;
    bel_http_server *server;
    const bel_http_config config = make_config();
    char text[TEXT];
    pthread_t thread;
    void *failed;
    BEL_ASSERT_OK(bel_http_server_start(&config, &server));
    int begun = connect_to(server), idle = connect_to(server), silent = connect_to(server);
    expect(begun, "GET /a HTTP/1.1\r\n\r\n", "GET /a 0:");
    expect(idle, "GET /b HTTP/1.1\r\n\r\n", "GET /b 0:");
    expect(silent, "GET /c HTTP/1.1\r\n\r\n", "GET /c 0:");
    put(begun, "POST /d HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
    read_until(begun, "HTTP/1.1 100 Continue\r\n\r\n", text); // it counts
    BEL_ASSERT_OK(bel_thread_start(&thread, drain, server));
    read_until(silent, "", text); // the moment of an idle connection is over: the drain has begun
    assert_string_equal(text, "");
    put(begun, "x");
    read_until(begun, "", text);
    assert_non_null(strstr(text, "Connection: close\r\n"));
    assert_non_null(strstr(text, "POST /d 1:x"));
    pthread_join(thread, &failed);
    assert_null(failed);
    read_until(idle, "", text);
    assert_string_equal(text, "");
    close(begun);
    close(idle);
    close(silent);
    bel_http_server_stop(server);
}

// A connection that waits for a thread when the drain begins is answered.
static void test_drain_of_queue(void **state)
{
    (void)state;
    enum { THREADS = 5 };
    bel_http_server *server;
    bel_http_config config = make_config();
    char text[TEXT];
    int silent[THREADS];
    config.connections = 1; // four threads more refuse
    BEL_ASSERT_OK(bel_http_server_start(&config, &server));
    for (int i = 0; i < THREADS; i++)
        silent[i] = connect_to(server);
    int queued = connect_to(server);
    put(queued, "GET /q HTTP/1.1\r\n\r\n");
    assert_int_equal(bel_http_server_drain(server, 20000), 0);
    read_until(queued, "", text);
    assert_non_null(strstr(text, "GET /q 0:"));
    for (int i = 0; i < THREADS; i++)
        close(silent[i]);
    close(queued);
    bel_http_server_stop(server);
}

// Stopping without a drain ends connections at once.
static void test_stop(void **state)
{
    (void)state;
    bel_http_server *server;
    const bel_http_config config = make_config();
    char text[TEXT];
    BEL_ASSERT_OK(bel_http_server_start(&config, &server));
    int one = connect_to(server), two = connect_to(server);
    expect(one, "GET /a HTTP/1.1\r\n\r\n", "GET /a 0:");
    put(two, "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
    read_until(two, "HTTP/1.1 100 Continue\r\n\r\n", text);
    bel_http_server_stop(server);
    read_until(one, "", text);
    read_until(two, "", text);
    close(one);
    close(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),          cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_refusal_by_head), cmocka_unit_test(test_drain),
        cmocka_unit_test(test_drain_of_queue),  cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
