/// Collectives of processes, for any C program: the calls of IBM's Distributed Deep Learning (DDL),
/// without a graph and without a job of Belfry's. A program that trains alone becomes one that
/// trains on many processes in four steps: begin, spread the start values, average gradients, deal
/// the data by rank.
///
/// ```c
/// bel_ddl *ddl;
/// BEL_TRY(bel_ddl_init(NULL, &ddl));
/// bel_ddl_place place = bel_ddl_place_of(ddl);
/// BEL_TRY(bel_ddl_bcast(ddl, &weights, 1));       // those of rank 0
/// for (int step = 0; step < steps; step++) {
///     compute(&weights, &gradients, place.rank, place.size);
///     BEL_TRY(bel_ddl_all_reduce_n(ddl, BEL_DDL_AVG, &gradients, 1));
///     update(&weights, &gradients);
/// }
/// return bel_ddl_finalize(ddl);
/// ```
///
/// **Who a process is** say the variables of whoever started it: `mpirun` of Open MPI
/// (OMPI_COMM_WORLD_RANK, …_SIZE, …_LOCAL_RANK, …_LOCAL_SIZE), torchrun (RANK, WORLD_SIZE,
/// LOCAL_RANK, LOCAL_WORLD_SIZE), Slurm's srun (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID), `belfry
/// local ranks`, or a script of one's own: BELFRY_DDL_RANK, BELFRY_DDL_SIZE and BELFRY_DDL_JOB, a
/// word that other jobs of the host do not have. Without any of them a process is alone, and every
/// call does what it does for one. No library of the launcher's is needed. All ranks must be on one
/// host.
///
/// **The same calls in the same order.** Every rank makes the same calls with tensors of the same
/// types and shapes. Calls are numbered and compared: where two ranks differ, all get an error that
/// says what each of them wanted.
///
/// **The same bits.** Sums are added along the tree over ranks that Belfry's replicas use: they
/// depend on the number of ranks and on nothing else, and are the same on all ranks.
///
/// **Waits end.** A rank that does not come within the deadline, or whose process has ended, is
/// named, and with that message the calls of all others fail, this one and all later ones.
///
/// For one thread at a time.
#ifndef BELFRY_DDL_H
#define BELFRY_DDL_H

#include "belfry/status.h"
#include "belfry/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A process among others; opaque.
typedef struct bel_ddl bel_ddl;

typedef struct bel_ddl_options {
    double timeout_secs; ///< that a rank is waited for; 0: 600
    int device;          ///< the one that this process prefers; negative: by its local rank
} bel_ddl_options;

typedef struct bel_ddl_place {
    int rank, size;             ///< among all processes
    int local_rank, local_size; ///< among those of this host
    int device;                 ///< for this process: the preferred one, or its local rank
} bel_ddl_place;

enum { BEL_DDL_MAX_RANKS = 64 };

/// Waits until all ranks are there. `options` may be NULL. Errors: INVALID_ARGUMENT: variables that
/// make no rank, named; UNIMPLEMENTED: ranks on several hosts; ALREADY_EXISTS: this rank is there
/// already; DEADLINE_EXCEEDED: a rank has not come, named; ABORTED: one has ended;
/// RESOURCE_EXHAUSTED: no shared memory.
BEL_API bel_status *bel_ddl_init(const bel_ddl_options *options, bel_ddl **out_ddl) BEL_MUST_USE;

BEL_API bel_ddl_place bel_ddl_place_of(const bel_ddl *ddl);

/// Gives all ranks what rank 0 has in these tensors, in place; of any type but strings. `data` of
/// each is written. Errors of all calls: INVALID_ARGUMENT: a tensor that cannot be exchanged;
/// FAILED_PRECONDITION: ranks have made different calls, both said; DEADLINE_EXCEEDED and ABORTED
/// as of bel_ddl_init. After an error the tensors hold nothing of account.
BEL_API bel_status *bel_ddl_bcast(bel_ddl *ddl, const bel_tensor *tensors, int count) BEL_MUST_USE;

typedef enum bel_ddl_op {
    BEL_DDL_SUM,
    BEL_DDL_AVG, ///< of F32 and F64 alone
} bel_ddl_op;

/// Adds or averages tensors over the ranks, in place: `count` of them in one call, of mixed sizes
/// and types among F32, F64, I32, I64.
BEL_API bel_status *bel_ddl_all_reduce_n(bel_ddl *ddl, bel_ddl_op op, const bel_tensor *tensors,
                                         int count) BEL_MUST_USE;

/// Memory for tensors that are exchanged where they lie: all ranks call this with as many bytes,
/// and where all give a call tensors at the same place of such memory, each rank reads the others'
/// values from there and nothing is packed. For large ones that takes a third less time. Zeroed,
/// aligned to 64 bytes; until bel_ddl_free or bel_ddl_finalize. Errors: those of all calls, and
/// RESOURCE_EXHAUSTED: the host has not so much shared memory.
BEL_API bel_status *bel_ddl_alloc(bel_ddl *ddl, size_t bytes, void **out_memory) BEL_MUST_USE;

/// Gives this rank's part back; no call, so others need not do so. NULL is accepted.
BEL_API void bel_ddl_free(bel_ddl *ddl, void *memory);

/// Returns when all ranks have come to it.
BEL_API bel_status *bel_ddl_barrier(bel_ddl *ddl) BEL_MUST_USE;

/// Waits for the others as a barrier does, and frees it in any case; NULL is accepted. A process
/// that ends without it ends the others with an error.
BEL_API bel_status *bel_ddl_finalize(bel_ddl *ddl) BEL_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
