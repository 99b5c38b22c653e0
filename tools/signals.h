// Ctrl-C and SIGTERM while training.
#ifndef BELFRY_TOOLS_SIGNALS_H
#define BELFRY_TOOLS_SIGNALS_H

#include <stdbool.h>

// From now on a bus error says what it means before it ends the process.
void bel_signals_explain(void);

// From now on the first SIGINT or SIGTERM asks training to save and end (bel_request_stop), and the
// second ends the process at once with 128 + its number; it is ignored where the process has a
// supervisor, which may pass on what everybody got, and which ends with SIGKILL. A closed stdout or
// stderr is an error of writing, no longer a signal.
void bel_signals_install(bool has_supervisor);

int bel_signals_caught(void);              // the first one's number; 0: none
const char *bel_signals_caught_name(void); // "SIGINT", "SIGTERM"; "a request" without a signal

#endif
