// Metrics port, tested over a socket. label: threads
#include "monitoring/metrics_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "support/bel_test.h"

// Sends a request and reads the complete answer.
static void ask(int port, const char *request, char *answer, size_t room)
{
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(descriptor >= 0);
    assert_int_equal(connect(descriptor, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(write(descriptor, request, strlen(request)), strlen(request));
    size_t used = 0;
    for (;;) {
        ssize_t got = read(descriptor, answer + used, room - 1 - used);
        if (got <= 0) break;
        used += (size_t)got;
    }
    answer[used] = '\0';
    close(descriptor);
}

static void test_answers(void **state)
{
    (void)state;
    bel_metrics_server *server;
    char answer[4096];
    BEL_ASSERT_OK(bel_metrics_server_start("127.0.0.1", 0, &server));
    int port = bel_metrics_server_port(server);
    assert_in_range(port, 1, 65535);
    ask(port, "GET /metrics HTTP/1.0\r\n\r\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "200 OK")); // no metrics yet
    bel_metrics_server_set(server, "belfry_step 7\n");
    ask(port, "GET /metrics HTTP/1.0\r\n\r\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "text/plain; version=0.0.4"));
    assert_non_null(strstr(answer, "\r\n\r\nbelfry_step 7\n"));
    ask(port, "HEAD /metrics HTTP/1.0\r\n\r\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "Content-Length: 14"));
    assert_null(strstr(answer, "belfry_step"));
    ask(port, "POST /metrics HTTP/1.0\r\nContent-Length: 0\r\n\r\n", answer, sizeof answer);
    assert_non_null(strstr(answer, " 405 "));
    ask(port, "GET /etc/passwd HTTP/1.0\r\n\r\n", answer, sizeof answer);
    assert_non_null(strstr(answer, " 404 "));
    ask(port, "nonsense\r\n\r\n", answer, sizeof answer);
    assert_null(strstr(answer, "200 OK"));
    ask(port, "GET /metrics HTTP/parrot\r\n\r\n", answer, sizeof answer); // no echo of input
    assert_int_equal(strncmp(answer, "HTTP/1.1 505 ", 13), 0);
    assert_null(strstr(answer, "parrot"));
    bel_metrics_server *second;
    BEL_ASSERT_FAILS(bel_metrics_server_start("127.0.0.1", port, &second), BEL_UNAVAILABLE,
                     "cannot serve metrics on 127.0.0.1");
    BEL_ASSERT_FAILS(bel_metrics_server_start("no.address", 0, &second), BEL_UNAVAILABLE,
                     "no.address");
    bel_metrics_server_stop(server);
    BEL_ASSERT_OK(bel_metrics_server_start("127.0.0.1", port, &server)); // the port is free again
    bel_metrics_server_stop(server);
    bel_metrics_server_stop(NULL);
}

static void *set_often(void *server)
{
    for (int i = 0; i < 2000; i++)
        bel_metrics_server_set(server, i % 2 == 0 ? "even 1\n" : "odd 1\n");
    return NULL;
}

static void test_while_it_changes(void **state)
{
    (void)state;
    bel_metrics_server *server;
    pthread_t thread;
    char answer[4096];
    BEL_ASSERT_OK(bel_metrics_server_start("127.0.0.1", 0, &server));
    bel_metrics_server_set(server, "even 1\n");
    BEL_ASSERT_OK(bel_thread_start(&thread, set_often, server));
    for (int i = 0; i < 20; i++) {
        ask(bel_metrics_server_port(server), "GET /metrics HTTP/1.0\r\n\r\n", answer,
            sizeof answer);
        bool whole =
            strstr(answer, "\r\n\r\neven 1\n") != NULL || strstr(answer, "\r\n\r\nodd 1\n") != NULL;
        assert_true(whole);
    }
    pthread_join(thread, NULL);
    bel_metrics_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_while_it_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
