// Explanation of bus errors, in every verb.
#ifndef BELFRY_TOOLS_COMMAND_SIGNALS_H
#define BELFRY_TOOLS_COMMAND_SIGNALS_H

// After this call, a bus error prints its meaning before it ends the process.
void bel_signals_explain(void);

#endif
