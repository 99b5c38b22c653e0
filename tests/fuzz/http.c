// Fuzz target for requests to the metrics port, each over a separate connection. It checks that an
// answer comes or the connection ends, and that the answer has nothing of the request or of a file.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "monitoring/metrics_server.h"

static int port(void)
{
    static bel_metrics_server *server; // for all inputs: it keeps nothing of a request
    if (server == NULL) {
        bool good = fuzz_is_good(bel_metrics_server_start("127.0.0.1", 0, &server));
        fuzz_expect(good, "a metrics server");
        bel_metrics_server_set(server, "belfry_step 7\n");
    }
    return bel_metrics_server_port(server);
}

// Closing resets the connection, so that ports are free again at once.
static int connect_to(int to)
{
    int file = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)to)};
    const struct linger reset = {1, 0};
    const struct timeval patience = {20, 0};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool set = setsockopt(file, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0 &&
               setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0;
    fuzz_expect(set && connect(file, (struct sockaddr *)&address, sizeof address) == 0,
                "a connection");
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST_ANSWER = 1 << 16 };
    static char answer[MOST_ANSWER];
    int file = connect_to(port());
    // The server may have disconnected already.
    (void)!send(file, data, size, MSG_NOSIGNAL);
    (void)shutdown(file, SHUT_WR);
    size_t used = 0;
    ssize_t got;
    while ((got = recv(file, answer + used, sizeof answer - 1 - used, 0)) > 0)
        used += (size_t)got;
    fuzz_expect(used < sizeof answer - 1, "a short answer");
    answer[used] = '\0';
    fuzz_expect(used == 0 || strncmp(answer, "HTTP/1.1 ", 9) == 0, "an answer of HTTP");
    fuzz_expect(strstr(answer, "root:") == NULL, "no file of the host");
    (void)close(file);
    return 0;
}
