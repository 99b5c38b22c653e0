// The engines, one file each; engine.c has the table.
#ifndef BELFRY_LAUNCH_ENGINE_ENGINES_H
#define BELFRY_LAUNCH_ENGINE_ENGINES_H

#include "launch/engine/engine.h"

extern const bel_engine bel_engine_local;
extern const bel_engine bel_engine_ssh;
extern const bel_engine bel_engine_mpi;
extern const bel_engine bel_engine_slurm;
extern const bel_engine bel_engine_kubernetes;

#endif
