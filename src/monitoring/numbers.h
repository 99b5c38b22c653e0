// Table of the numbers that members measure and the master shows. Messages have them as a flat list
// in this order (wire: STATUS and ENDED), so a new number needs only a row here and the code that
// measures it.
#ifndef BELFRY_MONITORING_NUMBERS_H
#define BELFRY_MONITORING_NUMBERS_H

// Owner of a number. PROCESS: every process.
typedef enum bel_number_owner { BEL_OF_WORKER, BEL_OF_SHARD, BEL_OF_PROCESS } bel_number_owner;

// id, name, owner, counts (1: counter, 0: gauge), meaning
#define BEL_NUMBERS(X)                                                                             \
    X(STEPS, "steps", WORKER, 1, "Steps that the worker has computed.")                            \
    X(INPUT, "input_seconds", WORKER, 1, "Time spent waiting for batches.")                        \
    X(COMPUTE, "compute_seconds", WORKER, 1, "Time spent computing, mean of the towers.")          \
    X(PUSH, "push_seconds", WORKER, 1, "Time spent summing gradients and handing them in.")        \
    X(EXCHANGE, "exchange_seconds", WORKER, 1, "Time from the last report to the next version.")   \
    X(TOTAL, "total_seconds", WORKER, 1, "Time in all steps.")                                     \
    X(COUNTED, "reports_counted", WORKER, 1, "Reports that became part of an update.")             \
    X(STALE, "reports_stale", WORKER, 1, "Of these, on older versions than the one updated.")      \
    X(DROPPED, "reports_dropped", WORKER, 1, "Reports that came too late to count.")               \
    X(INPUT_MEMORY, "input_bytes", WORKER, 0, "Memory of the batches kept ready and being read.")  \
    X(VERSIONS, "versions", SHARD, 1, "Versions published.")                                       \
    X(PASSES, "passes", SHARD, 1, "Passes over chunks.")                                           \
    X(PASSING, "pass_seconds", SHARD, 1, "Time in passes, over all threads.")                      \
    X(GATHER, "gather_seconds", SHARD, 1, "Time that reports waited for their step's last.")       \
    X(APPLY, "apply_seconds", SHARD, 1, "Time from a step's last report to its version.")          \
    X(RECEIVED, "received_bytes", SHARD, 1, "Payload of frames taken; in place where shared.")     \
    X(SENT, "sent_bytes", SHARD, 1, "Payload of frames sent; in place where shared.")              \
    X(QUEUE, "queue", SHARD, 0, "Chunks and reports that wait for work.")                          \
    X(UNUSED, "unused_frames", SHARD, 1, "Frames dropped: late, repeated or of another.")          \
    X(REFUSED, "refused_rows", SHARD, 1, "Keys of updates that full tables gave no row.")          \
    X(ROWS, "rows", SHARD, 0, "Rows of tables.")                                                   \
    X(WAITING, "waiting_keys", SHARD, 0, "Keys without a row that wait for their N-th use.")       \
    X(ADMITTED, "admitted_rows", SHARD, 1, "Rows that updates created.")                           \
    X(EXPIRED, "expired_rows", SHARD, 1, "Rows removed as no batch named them.")                   \
    X(MEMORY, "memory_bytes", PROCESS, 0, "Resident memory of the process.")

typedef enum bel_number {
#define X(id, name, owner, counts, help) BEL_NUMBER_##id,
    BEL_NUMBERS(X)
#undef X
        BEL_NUMBER_COUNT
} bel_number;

// Numbers after the list, from the process with shard 0: COUNTED, STALE and DROPPED of each worker.
enum { BEL_NUMBERS_BY_WORKER = 3 };

typedef struct bel_number_info {
    const char *name;
    bel_number_owner owner;
    int counts;
    const char *help;
} bel_number_info;

extern const bel_number_info bel_number_table[BEL_NUMBER_COUNT];

// A GPU used by a worker's towers, and its memory in bytes.
typedef struct bel_device_numbers {
    int number;       // the 1 of "cuda:1", as the worker's process counts them
    int towers;       // this worker's towers on it
    double taken;     // by this process, for programs
    double free, all; // for all processes
} bel_device_numbers;

enum { BEL_MOST_DEVICES = 64 };

#endif
