// The table of engines. The commands find an engine by the name in the job's record or by its
// index, and know no engine by themselves: a further one is a file of its own, a line in
// engines.h and a row here.
#include "launch/engine.h"

#include <string.h>

#include "launch/engines.h"

static const bel_engine *const engines[] = {&bel_engine_local};
enum { ENGINE_COUNT = sizeof engines / sizeof engines[0] };

const bel_engine *bel_engine_at(int index)
{
    return index >= 0 && index < ENGINE_COUNT ? engines[index] : NULL;
}

const bel_engine *bel_engine_find(const char *name)
{
    for (int i = 0; i < ENGINE_COUNT; i++)
        if (strcmp(engines[i]->name, name) == 0) return engines[i];
    return NULL;
}
