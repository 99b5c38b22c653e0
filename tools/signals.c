// The one handler that the command installs in every verb; those of training are bel_run_job's.
#include "signals.h"

#include <signal.h>
#include <unistd.h>

// Reading what has gone: the file behind a mapping became shorter, or its device failed. (The
// readers of files look before they read; this is what happens in between.)
static void on_bus_error(int number)
{
    static const char text[] =
        "belfry: a file that is being read became shorter, or its device failed\n";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    signal(number, SIG_DFL); // which ends the process, when the access is tried again
}

void bel_signals_explain(void)
{
    signal(SIGBUS, on_bus_error);
}
