// Self-pipe. Neither end blocks: a handler must not wait for a full pipe, which has enough signals,
// and the poll loop reads until the pipe is empty. The previous handlers are restored before the
// pipe is closed, so that no handler writes into a reused descriptor. All state is static because a
// handler has no argument, so a process can have only one user.
#include "launch/supervise/stop_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/linux_process.h"

static volatile sig_atomic_t writing_end = -1;

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGCHLD};
enum { NUMBER_COUNT = sizeof numbers / sizeof numbers[0] };
static struct sigaction before[NUMBER_COUNT];
static sigset_t mask_before;

// Runs on any thread. Uses only async-signal-safe calls and preserves errno.
static void on_signal(int number)
{
    int error = errno;
    unsigned char byte = (unsigned char)number;
    ssize_t wrote = write(writing_end, &byte, 1); // a full pipe has enough signals
    (void)wrote;
    errno = error;
}

static void set_of(sigset_t *out_set)
{
    sigemptyset(out_set);
    for (int i = 0; i < NUMBER_COUNT; i++)
        sigaddset(out_set, numbers[i]);
}

void bel_stop_signals_block(void)
{
    sigset_t mine;
    set_of(&mine);
    sigprocmask(SIG_BLOCK, &mine, NULL);
}

bel_status *bel_stop_signals_open(int *out_descriptor)
{
    int ends[2];
    BEL_TRY(bel_linux_pipe(ends));
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK); // a handler must not wait for a full pipe
    writing_end = ends[1];
    for (int i = 0; i < NUMBER_COUNT; i++) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        if (numbers[i] == SIGPIPE) action.sa_handler = SIG_IGN;
        if (numbers[i] == SIGCHLD) action.sa_handler = SIG_DFL;
        sigemptyset(&action.sa_mask);
        sigaction(numbers[i], NULL, &before[i]);
        bool ignored = numbers[i] == SIGHUP && before[i].sa_handler == SIG_IGN;
        if (!ignored) sigaction(numbers[i], &action, NULL);
    }
    sigset_t mine;
    set_of(&mine);
    sigprocmask(SIG_UNBLOCK, &mine, &mask_before);
    *out_descriptor = ends[0];
    return NULL;
}

int bel_stop_signals_read(int descriptor)
{
    unsigned char byte;
    ssize_t got;
    do {
        got = read(descriptor, &byte, 1);
    } while (got < 0 && errno == EINTR);
    if (got != 1) return 0;
    return byte == SIGHUP ? SIGTERM : byte == SIGUSR2 ? SIGUSR1 : byte;
}

void bel_stop_signals_close(int descriptor)
{
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
    for (int i = 0; i < NUMBER_COUNT; i++)
        sigaction(numbers[i], &before[i], NULL);
    int end = writing_end;
    writing_end = -1;
    close(end);
    close(descriptor);
}
