// Bus errors, in every verb.
#ifndef BELFRY_TOOLS_SIGNALS_H
#define BELFRY_TOOLS_SIGNALS_H

// From now on a bus error says what it means before it ends the process.
void bel_signals_explain(void);

#endif
