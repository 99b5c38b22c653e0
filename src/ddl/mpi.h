// MPI_Allreduce of Open MPI, as a baseline: its library is loaded when it is asked for.
#ifndef BELFRY_DDL_MPI_H
#define BELFRY_DDL_MPI_H

#include "belfry/ddl.h"

typedef struct bel_ddl_mpi bel_ddl_mpi;

// Where the program has not begun MPI itself it is begun here, if `begins`. NOT_FOUND: there is no
// Open MPI; FAILED_PRECONDITION: its ranks are others than these, or it has not begun.
bel_status *bel_ddl_mpi_open(const bel_ddl_place *place, bool begins,
                             bel_ddl_mpi **out_mpi) BEL_MUST_USE;
// Ends MPI if it has begun it, and all ranks are there to `meet` at its end: it waits for them
// without a deadline. NULL is fine.
void bel_ddl_mpi_close(bel_ddl_mpi *mpi, bool meet);

// Sums in place, divided; there is no deadline. F32, F64, I32, I64.
bel_status *bel_ddl_mpi_sum(bel_ddl_mpi *mpi, const bel_tensor *tensor,
                            double divisor) BEL_MUST_USE;

#endif
