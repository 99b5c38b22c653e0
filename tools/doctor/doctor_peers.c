// Runs one ssh for each host, with a script on its stdin. The remote `sh -s` reads it, so the login
// shell never parses it. The whole script is in the pipe before ssh starts; it must fit in there,
// which is enough for a few lines.
//
// Every wait has a limit. ssh does not prompt for a password (BatchMode), and its connection times
// out after 5 s. After 10 s a process is killed with all its children. If ssh leaves a master of
// shared connections running, its pipes may stay open indefinitely, so only the exit of the process
// counts, not the end of its output.
#include "doctor/doctor_peers.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/number.h"
#include "base/program.h"
#include "base/str.h"

bel_status *bel_peers_program(char **out_path)
{
    const char *given = getenv("BELFRY_SSH");
    return bel_program_find(given != NULL && given[0] != '\0' ? given : "ssh", out_path);
}

void bel_peer_deinit(bel_peer *peer)
{
    bel_str_deinit(&peer->output);
    bel_str_deinit(&peer->errors);
}

// --- One ssh ------------------------------------------------------------------------------------

// Running ssh of a peer.
typedef struct call {
    bel_peer *peer;
    bel_linux_process process; // descriptor -1: it exited, or never started
    int output, errors;        // reading ends, -1: closed
    int64_t start_ns;
} call;

static void close_end(int *descriptor)
{
    if (*descriptor >= 0) close(*descriptor);
    *descriptor = -1;
}

// Makes a pipe that contains the script.
static bel_status *fill_pipe(const char *script, int *out_descriptor)
{
    int ends[2];
    BEL_TRY(bel_linux_pipe(ends));
    size_t length = strlen(script);
    ssize_t wrote = write(ends[1], script, length);
    close(ends[1]);
    if (wrote >= 0 && (size_t)wrote == length) {
        *out_descriptor = ends[0];
        return NULL;
    }
    close(ends[0]);
    return BEL_ERR(BEL_INTERNAL, "a pipe does not take a script of %zu bytes", length);
}

static bel_status *spawn(call *c, const char *program, const int descriptors[3])
{
    char words[8][64] = {
        "ssh", "-o", "BatchMode=yes", "-o", "", "sh -s",
    };
    bel_snprintf(words[4], sizeof words[4], "ConnectTimeout=%d", BEL_PEERS_CONNECT_SECS);
    char *destination = bel_xstrdup(c->peer->destination);
    char *const arguments[] = {words[0], words[1],    words[2], words[3],
                               words[4], destination, words[5], NULL};
    bel_linux_spawn how = {.program = program,
                           .arguments = arguments,
                           .standard = {descriptors[0], descriptors[1], descriptors[2]}};
    bel_status *status = bel_linux_process_spawn(&how, &c->process);
    bel_free(destination);
    return status;
}

static bel_status *doctor_peers_start(call *c, const char *program, const char *script)
{
    int input = -1, output[2] = {-1, -1}, errors[2] = {-1, -1};
    c->start_ns = bel_clock_ns();
    bel_status *status = fill_pipe(script, &input);
    if (status == NULL) status = bel_linux_pipe(output);
    if (status == NULL) status = bel_linux_pipe(errors);
    const int descriptors[3] = {input, output[1], errors[1]};
    if (status == NULL) status = spawn(c, program, descriptors);
    close_end(&input);
    close_end(&output[1]);
    close_end(&errors[1]);
    c->output = output[0];
    c->errors = errors[0];
    return status;
}

static void note_answer(call *c)
{
    bel_peer *peer = c->peer;
    if (peer->heard_at > 0 || peer->output.text == NULL) return;
    const char *line = strstr(peer->output.text, BEL_PEERS_WORD);
    if (line == NULL || strchr(line, '\n') == NULL) return;
    peer->heard_at = bel_clock_wall();
    peer->answered_secs = (double)(bel_clock_ns() - c->start_ns) * 1e-9;
}

// Reads the available output. Bytes beyond a limit are dropped, so that no peer can fill the
// memory.
static void doctor_peers_drain(call *c, int *descriptor, bel_str *into)
{
    enum { MOST = 65536 };
    char bytes[4096];
    while (*descriptor >= 0) {
        ssize_t got = read(*descriptor, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return;
        if (got <= 0) {
            close_end(descriptor);
            return;
        }
        if (into->length + (size_t)got <= MOST) bel_str_append(into, bytes, (size_t)got);
        note_answer(c);
    }
}

// Makes progress on a call without waiting; true after its end.
static bool proceed(call *c)
{
    if (c->process.descriptor < 0) return true;
    doctor_peers_drain(c, &c->output, &c->peer->output);
    doctor_peers_drain(c, &c->errors, &c->peer->errors);
    bool late = bel_clock_ns() - c->start_ns > (int64_t)BEL_PEERS_MOST_SECS * 1000000000;
    if (late && !c->peer->timed_out) {
        c->peer->timed_out = true;
        bel_linux_process_signal(&c->process, SIGKILL, true);
    }
    bel_linux_end end;
    if (!bel_linux_process_wait(&c->process, 0, &end)) return false;
    c->peer->code = end.code;
    doctor_peers_drain(c, &c->output, &c->peer->output); // the rest
    doctor_peers_drain(c, &c->errors, &c->peer->errors);
    close_end(&c->output);
    close_end(&c->errors);
    return true;
}

// --- Many ---------------------------------------------------------------------------------------

// Waits until a call has output or exits, or until it is time to check the clock.
static void wait_for_news(const call *calls, size_t count)
{
    enum { LOOK_MS = 100 };
    struct pollfd waiting[3 * BEL_PEERS_AT_ONCE];
    nfds_t waiting_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (calls[i].process.descriptor < 0) continue;
        const int descriptors[] = {calls[i].process.descriptor, calls[i].output, calls[i].errors};
        for (int j = 0; j < 3; j++) {
            if (descriptors[j] < 0) continue;
            waiting[waiting_count++] = (struct pollfd){.fd = descriptors[j], .events = POLLIN};
        }
    }
    (void)poll(waiting, waiting_count, LOOK_MS); // a signal only makes it return early
}

static void ask_some(const char *program, bel_peer *peers, size_t count, const char *script)
{
    call calls[BEL_PEERS_AT_ONCE];
    for (size_t i = 0; i < count; i++) {
        calls[i] = (call){.peer = &peers[i], .process.descriptor = -1, .output = -1, .errors = -1};
        bel_status *status = doctor_peers_start(&calls[i], program, script);
        if (status == NULL) continue;
        peers[i].code = -1;
        bel_str_puts(&peers[i].errors, bel_status_message(status));
        bel_status_destroy(status);
        close_end(&calls[i].output);
        close_end(&calls[i].errors);
    }
    for (;;) {
        bool all = true;
        for (size_t i = 0; i < count; i++)
            all = proceed(&calls[i]) && all;
        if (all) return;
        wait_for_news(calls, count);
    }
}

void bel_peers_ask(const char *program, bel_peer *peers, size_t count, const char *script)
{
    for (size_t i = 0; i < count; i += BEL_PEERS_AT_ONCE) {
        size_t left = count - i;
        ask_some(program, peers + i, left < BEL_PEERS_AT_ONCE ? left : BEL_PEERS_AT_ONCE, script);
    }
}

// --- Results ------------------------------------------------------------------------------------

// Removes control bytes from a remote host's output, which is printed on the terminal.
static void make_plain(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
}

bool bel_peer_value(const bel_peer *peer, const char *name, char *out_value, size_t size)
{
    char *begin = bel_strf(BEL_PEERS_WORD "%s ", name);
    size_t length = strlen(begin);
    const char *line = peer->output.text;
    while (line != NULL && strncmp(line, begin, length) != 0) {
        line = strchr(line, '\n');
        if (line != NULL) line++;
    }
    if (line != NULL) {
        line += length;
        bel_snprintf(out_value, size, "%.*s", (int)strcspn(line, "\r\n"), line);
        make_plain(out_value);
    }
    bel_free(begin);
    return line != NULL;
}

const char *bel_peer_problem(const bel_peer *peer, char text[160])
{
    enum { SIZE = 160 };
    if (peer->timed_out) {
        bel_snprintf(text, SIZE, "no end within %d s", BEL_PEERS_MOST_SECS);
        return text;
    }
    const char *all = peer->errors.text != NULL ? peer->errors.text : "";
    size_t end = strlen(all);
    while (end > 0 && strchr("\r\n", all[end - 1]) != NULL)
        end--;
    size_t begin = end;
    while (begin > 0 && strchr("\r\n", all[begin - 1]) == NULL)
        begin--;
    if (end > begin) {
        bel_snprintf(text, SIZE, "%.*s", (int)(end - begin), all + begin);
        make_plain(text);
    } else {
        bel_snprintf(text, SIZE, "it ended with exit code %d and said nothing", peer->code);
    }
    return text;
}
