/// Collectives of processes, for any C program: the calls of IBM's Distributed Deep Learning (DDL),
/// without a graph and without a Belfry job. Four steps distribute a program over many processes:
/// initialize, broadcast the start values, average gradients, assign the data by rank.
///
/// ```c
/// bel_ddl *ddl;
/// BEL_TRY(bel_ddl_init(NULL, &ddl));
/// bel_ddl_place place = bel_ddl_place_of(ddl);
/// BEL_TRY(bel_ddl_bcast(ddl, &weights, 1));       // rank 0's weights
/// for (int step = 0; step < steps; step++) {
///     compute(&weights, &gradients, place.rank, place.size);
///     BEL_TRY(bel_ddl_all_reduce_n(ddl, BEL_DDL_AVG, &gradients, 1));
///     update(&weights, &gradients);
/// }
/// return bel_ddl_finalize(ddl);
/// ```
///
/// **Rank and size** come from the launcher's environment variables: `mpirun`, `mpiexec`, torchrun,
/// `srun`, `belfry local ranks`, or a custom script with BELFRY_RANK, BELFRY_SIZE and BELFRY_JOB, a
/// word that is unique among the host's jobs (docs/launchers.md). Without any of them there is one
/// process, and every call works for one. No library of the launcher is needed. Ranks of one host
/// share memory. Hosts meet at an address of rank 0's host, and BELFRY_SECRET excludes others
/// (docs/ddl.md). Call bel_ddl_init before a bel_estimator is made: ranks of this header are no
/// Belfry job.
///
/// **The same calls in the same order.** Every rank makes the same calls with tensors of the same
/// types and shapes. Calls are numbered and compared: if two ranks differ, all get an error with
/// the calls of both.
///
/// **The same bits.** Sums are added along the tree over ranks that Belfry's replicas use. They
/// depend only on the number of ranks, not on hosts, and are the same on all ranks. With
/// BEL_DDL_FAST they are only the same on all ranks.
///
/// **Waits end.** If a rank misses the deadline or its process exits, the calls of all other ranks
/// fail, this one and all later ones. The message names that rank.
///
/// For one thread at a time.
#ifndef BELFRY_DDL_H
#define BELFRY_DDL_H

#include "belfry/status.h"
#include "belfry/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Process in a group of ranks; opaque.
typedef struct bel_ddl bel_ddl;

/// Order in which the values of ranks are added.
typedef enum bel_ddl_order {
    BEL_DDL_FIXED, ///< along the tree over ranks, with any mode
    BEL_DDL_FAST,  ///< any order; allows a ring and Open MPI
} bel_ddl_order;

/// Preferences of a program. The variable BELFRY_DDL_OPTIONS, such as "mode=r order=fast
/// timeout=60", overrides them. Mode, order and check must be the same for all ranks.
/// bel_ddl_options_init sets the defaults in brackets.
typedef struct bel_ddl_options {
    size_t size;         ///< sizeof(bel_ddl_options), by bel_ddl_options_init
    double timeout_secs; ///< deadline for a rank, above 0 [600]
    int device;          ///< preferred device of this process; negative: by its local rank [-1]
    /// Numbers devices by PCI address, as CUDA_DEVICE_ORDER=PCI_BUS_ID does, which is set unless it
    /// is already; false: CUDA's default, the fastest first [true]
    bool pci;

    /// Algorithm of a sum: a letter, and the dimensions of the ranks, "LETTER:XxYxZ". X ranks share
    /// memory, Y such groups are near each other, Z are far. Their product must be the number of
    /// ranks; trailing dimensions may be left out. Without dimensions: X is as large as possible,
    /// and all groups are near. NULL: s [NULL]
    /// - s: each rank adds one share of the elements, like a parameter server;
    /// - o: once: each rank receives all values and adds them all;
    /// - r: shares go around a ring of the groups, Y, and around a ring of those, Z; BEL_DDL_FAST
    ///   only;
    /// - m: MPI_Allreduce of Open MPI, whose mpirun must have started the ranks; BEL_DDL_FAST only,
    ///   and without dimensions. Its waits have no deadline;
    /// - p: measures the modes that `order` allows and keeps the fastest for each size of a call,
    ///   also for the next job of the same ranks on the same hosts (docs/ddl.md).
    const char *mode;

    bel_ddl_order order; ///< [BEL_DDL_FIXED]

    /// Above 0: compares each sum with one in double that is computed separately, rank after rank.
    /// A call fails with DATA_LOSS when an element differs by more than this share of the sum of
    /// the ranks' absolute values. Multiplies the time, and needs memory for a copy of the tensors.
    /// 0 to 1 [0]
    double check;
} bel_ddl_options;

/// Sets every field to its default. `size` is sizeof *options.
BEL_API void bel_ddl_options_init(bel_ddl_options *options, size_t size);

/// Position of a process among the ranks.
typedef struct bel_ddl_place {
    int rank, size;             ///< among all processes
    int local_rank, local_size; ///< among those of this host
    int device;                 ///< device of this process: the preferred one, or its local rank
} bel_ddl_place;

enum { BEL_DDL_MAX_RANKS = 64 };

/// Joins the group and waits for all ranks. `options`: NULL: the defaults. INVALID_ARGUMENT:
/// inconsistent variables, or an invalid option, named. FAILED_PRECONDITION: ranks have different
/// options, or `order` or the hosts do not allow them. UNAUTHENTICATED: another secret.
/// ALREADY_EXISTS: this rank exists already. DEADLINE_EXCEEDED: a rank is missing, named. ABORTED:
/// a rank exited. RESOURCE_EXHAUSTED: no shared memory. NOT_FOUND: mode m without Open MPI.
BEL_API bel_status *bel_ddl_init(const bel_ddl_options *options, bel_ddl **out_ddl) BEL_MUST_USE;

/// Returns the position of this process.
BEL_API bel_ddl_place bel_ddl_place_of(const bel_ddl *ddl);

/// Broadcasts these tensors of rank 0 to all ranks, in place; any type but strings. `data` of each
/// is written. Errors of all calls: INVALID_ARGUMENT: a tensor that cannot be exchanged;
/// FAILED_PRECONDITION: ranks made different calls, with both; DEADLINE_EXCEEDED and ABORTED as for
/// bel_ddl_init. After an error the contents of the tensors are undefined.
BEL_API bel_status *bel_ddl_bcast(bel_ddl *ddl, const bel_tensor *tensors, int count) BEL_MUST_USE;

typedef enum bel_ddl_op {
    BEL_DDL_SUM,
    BEL_DDL_AVG, ///< only F32 and F64
} bel_ddl_op;

/// Broadcasts from rank `root`. INVALID_ARGUMENT: there is no such rank.
BEL_API bel_status *bel_ddl_bcast_from(bel_ddl *ddl, int root, const bel_tensor *tensors,
                                       int count) BEL_MUST_USE;

/// Adds or averages tensors over the ranks, in place: `count` of them in one call, of mixed sizes
/// and types among F32, F64, I32, I64. DATA_LOSS, with bel_ddl_options.check: a sum is wrong; the
/// message names rank, tensor, element and the largest error.
BEL_API bel_status *bel_ddl_all_reduce_n(bel_ddl *ddl, bel_ddl_op op, const bel_tensor *tensors,
                                         int count) BEL_MUST_USE;

/// Allocates shared memory for tensors. All ranks call this with the same number of bytes. Other
/// ranks read a tensor in it directly, without packing; all ranks must place a call's tensors at
/// the same offsets. The processor's caches determine whether that is faster (docs/ddl.md). Zeroed,
/// aligned to 64 bytes; valid until bel_ddl_free or bel_ddl_finalize. Errors: those of all calls,
/// and RESOURCE_EXHAUSTED: the host lacks shared memory.
BEL_API bel_status *bel_ddl_alloc(bel_ddl *ddl, size_t bytes, void **out_memory) BEL_MUST_USE;

/// Frees this rank's part. This is no collective call, so other ranks need not free theirs. Accepts
/// NULL.
BEL_API void bel_ddl_free(bel_ddl *ddl, void *memory);

/// Waits until all ranks have called it.
BEL_API bel_status *bel_ddl_barrier(bel_ddl *ddl) BEL_MUST_USE;

/// Waits for the others like a barrier, and frees `ddl` in any case; accepts NULL. A process that
/// exits without it ends the others with an error.
BEL_API bel_status *bel_ddl_finalize(bel_ddl *ddl) BEL_MUST_USE;

/// Ends the calls of all ranks with ABORTED and this reason, and frees `ddl` without waiting. For a
/// rank that cannot continue. Accepts NULL.
BEL_API void bel_ddl_abort(bel_ddl *ddl, const char *why);

#ifdef __cplusplus
}
#endif

#endif
