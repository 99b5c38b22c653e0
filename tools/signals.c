// The handler only sets a flag and calls bel_request_stop, which is safe there; the rest happens
// in the training loop. A second signal ends the process with _exit, without saving, and so
// without waiting for any thread. SIGHUP counts as SIGTERM, and stays ignored under nohup.
// SIGPIPE is ignored, so that a reader who goes away is an error of writing and does not end a
// training. All but the one for bus errors are installed by the training verbs alone: others end
// by the signals' defaults.
#include "signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "belfry/estimator.h"
#include "input/file_view.h"

static volatile sig_atomic_t caught, repeats_count;

static void on_signal(int number)
{
    if (caught != 0 && repeats_count) _exit(128 + (number == SIGHUP ? SIGTERM : number));
    if (caught != 0) return;
    caught = number == SIGHUP ? SIGTERM : number;
    bel_request_stop();
}

// Reading what has gone: the file behind a mapping became shorter, or its device failed. (The
// readers of files look before they read; this is what happens in between.)
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    static const char text[] = ": a file that is being read became shorter, or its device failed\n";
    (void)context;
    const char *path = bel_file_view_at(info->si_addr);
    (void)!write(STDERR_FILENO, "belfry: ", 8);
    (void)!write(STDERR_FILENO, path != NULL ? path : "input", path != NULL ? strlen(path) : 5);
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    signal(number, SIG_DFL); // which ends the process, when the access is tried again
}

void bel_signals_explain(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

void bel_signals_install(bool has_supervisor)
{
    repeats_count = !has_supervisor;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    bool is_ignored =
        sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN; // nohup
    if (!is_ignored) sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int bel_signals_caught(void)
{
    return caught;
}

const char *bel_signals_caught_name(void)
{
    if (caught == 0) return "a request";
    return caught == SIGINT ? "SIGINT" : "SIGTERM";
}
