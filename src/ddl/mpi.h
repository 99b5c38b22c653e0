// Open MPI's MPI_Allreduce as a baseline; the library is loaded on request.
#ifndef BELFRY_DDL_MPI_H
#define BELFRY_DDL_MPI_H

#include "belfry/ddl.h"

typedef struct bel_ddl_mpi bel_ddl_mpi;

// If the program has not initialized MPI, this does so if `begins`. NOT_FOUND: no Open MPI.
// FAILED_PRECONDITION: its ranks differ from these, or MPI is not initialized.
bel_status *bel_ddl_mpi_open(const bel_ddl_place *place, bool begins,
                             bel_ddl_mpi **out_mpi) BEL_MUST_USE;
// Finalizes MPI if bel_ddl_mpi_open initialized it and all ranks are there to `meet`, because
// finalizing waits for them without a deadline. NULL is fine.
void bel_ddl_mpi_close(bel_ddl_mpi *mpi, bool meet);

// Sums in place, divided, without a deadline. F32, F64, I32, I64.
bel_status *bel_ddl_mpi_sum(bel_ddl_mpi *mpi, const bel_tensor *tensor,
                            double divisor) BEL_MUST_USE;

#endif
