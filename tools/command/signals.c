// Signals of the command in every verb; bel_run_job handles those of training.
#include "command/signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "input/files/file_view.h"

// Reports a read of lost data: the mapped file became shorter, or its device failed. Readers check
// files before they read; this handles changes in between.
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    static const char text[] = ": a file that is being read became shorter, or its device failed\n";
    (void)context;
    const char *path = bel_file_view_at(info->si_addr);
    (void)!write(STDERR_FILENO, "belfry: ", 8);
    (void)!write(STDERR_FILENO, path != NULL ? path : "input", path != NULL ? strlen(path) : 5);
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    signal(number, SIG_DFL); // ends the process when the access is repeated
}

void bel_signals_explain(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
    signal(SIGXFSZ, SIG_IGN); // a file beyond the limit is a write error
}
