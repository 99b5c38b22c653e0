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
/// **Who a process is** say the variables of whoever started it: `mpirun`, `mpiexec`, torchrun,
/// `srun`, `belfry local ranks`, or a script of one's own with BELFRY_RANK, BELFRY_SIZE and
/// BELFRY_JOB, a word that other jobs of the host do not have (docs/launchers.md). Without any of
/// them a process is alone, and every call does what it does for one. No library of the launcher's
/// is needed. Ranks of one host share memory; hosts meet at an address of rank 0's host, and
/// BELFRY_SECRET keeps others out (docs/ddl.md). Begin before a bel_estimator is made: ranks that
/// call each other are no job of Belfry's.
///
/// **The same calls in the same order.** Every rank makes the same calls with tensors of the same
/// types and shapes. Calls are numbered and compared: where two ranks differ, all get an error that
/// says what each of them wanted.
///
/// **The same bits.** Sums are added along the tree over ranks that Belfry's replicas use: they
/// depend on the number of ranks and on nothing else, not on hosts either, and are the same on all
/// ranks. With BEL_DDL_FAST they are the same on all ranks, and that is all.
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

/// In which order the values of ranks are added.
typedef enum bel_ddl_order {
    BEL_DDL_FIXED, ///< along the tree over ranks, by whatever way
    BEL_DDL_FAST,  ///< in any; a ring and Open MPI's are allowed
} bel_ddl_order;

/// What a program would have; the variable BELFRY_DDL_OPTIONS, such as "mode=r order=fast
/// timeout=60", wins over it. Mode, order and check must be the same for all ranks. Begin with
/// bel_ddl_options_default.
typedef struct bel_ddl_options {
    double timeout_secs; ///< that a rank is waited for, above 0 [600]
    int device;          ///< the one that this process prefers; negative: by its local rank [-1]
    /// Devices count by their PCI number, as CUDA_DEVICE_ORDER=PCI_BUS_ID says, which is set unless
    /// it is there; false: as CUDA counts by itself, the fastest first [true]
    bool pci;

    /// The way of a sum: a letter, and the dimensions that the ranks make, "LETTER:XxYxZ". X ranks
    /// share memory, Y such groups are near each other, Z are far; their product must be the number
    /// of ranks, and dimensions at the end may be left out. Without dimensions: as many ranks share
    /// memory as can, and all groups are near. NULL: s [NULL]
    /// - s: each rank adds up a share, as if it were its parameter server;
    /// - o: once: each rank is given all values and adds them all;
    /// - r: shares go around a ring of the groups, Y, and of those, Z; BEL_DDL_FAST only;
    /// - m: MPI_Allreduce of Open MPI, by whose mpirun ranks were started; BEL_DDL_FAST only, and
    ///   without dimensions. There waits have no end;
    /// - p: what `order` allows is measured, and the fastest kept for each size of a call, also for
    ///   the next job of the same ranks on the same hosts (docs/ddl.md).
    const char *mode;

    bel_ddl_order order; ///< [BEL_DDL_FIXED]

    /// Above 0: each sum is compared with one that is made in double by a way of its own, rank
    /// after rank, and a call fails with DATA_LOSS when an element is further from it than this
    /// share of the sum of the ranks' absolute values. Takes a multiple of the time, and memory for
    /// a copy of the tensors. 0 to 1 [0]
    double check;
} bel_ddl_options;

BEL_API bel_ddl_options bel_ddl_options_default(void);

typedef struct bel_ddl_place {
    int rank, size;             ///< among all processes
    int local_rank, local_size; ///< among those of this host
    int device;                 ///< for this process: the preferred one, or its local rank
} bel_ddl_place;

enum { BEL_DDL_MAX_RANKS = 64 };

/// Waits until all ranks are there. `options`: NULL: the defaults. Errors: INVALID_ARGUMENT:
/// variables that make no rank, or options that are none, named; FAILED_PRECONDITION: ranks that
/// have other options, or that `order` or the hosts do not allow; UNAUTHENTICATED: another secret;
/// ALREADY_EXISTS: this rank is there already; DEADLINE_EXCEEDED: a rank has not come, named;
/// ABORTED: one has ended; RESOURCE_EXHAUSTED: no shared memory; NOT_FOUND: mode m without Open
/// MPI.
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

/// The same from rank `root`. INVALID_ARGUMENT: there is no such rank.
BEL_API bel_status *bel_ddl_bcast_from(bel_ddl *ddl, int root, const bel_tensor *tensors,
                                       int count) BEL_MUST_USE;

/// Adds or averages tensors over the ranks, in place: `count` of them in one call, of mixed sizes
/// and types among F32, F64, I32, I64. DATA_LOSS, with bel_ddl_options.check: a sum is wrong; the
/// message names rank, tensor, element and the largest error.
BEL_API bel_status *bel_ddl_all_reduce_n(bel_ddl *ddl, bel_ddl_op op, const bel_tensor *tensors,
                                         int count) BEL_MUST_USE;

/// Memory for tensors that are exchanged where they lie: all ranks call this with as many bytes.
/// A tensor in it is read by the others where it lies, and not packed; all ranks must give a call
/// those at the same place. Whether that is faster depends on the processor's caches (docs/ddl.md).
/// Zeroed, aligned to 64 bytes; until bel_ddl_free or bel_ddl_finalize. Errors: those of all calls,
/// and RESOURCE_EXHAUSTED: the host has not so much shared memory.
BEL_API bel_status *bel_ddl_alloc(bel_ddl *ddl, size_t bytes, void **out_memory) BEL_MUST_USE;

/// Gives this rank's part back; no call, so others need not do so. NULL is accepted.
BEL_API void bel_ddl_free(bel_ddl *ddl, void *memory);

/// Returns when all ranks have come to it.
BEL_API bel_status *bel_ddl_barrier(bel_ddl *ddl) BEL_MUST_USE;

/// Waits for the others as a barrier does, and frees it in any case; NULL is accepted. A process
/// that ends without it ends the others with an error.
BEL_API bel_status *bel_ddl_finalize(bel_ddl *ddl) BEL_MUST_USE;

/// Ends the calls of all ranks with ABORTED and this reason, and frees it; waits for nobody. For a
/// rank that cannot go on. NULL is accepted.
BEL_API void bel_ddl_abort(bel_ddl *ddl, const char *why);

#ifdef __cplusplus
}
#endif

#endif
