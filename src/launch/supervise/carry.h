// The verb `carry`: the remote end of a supervisor. On another host it starts a process of the job,
// forwards signals to it, and exits with its exit code. No Belfry process runs on that host
// beforehand. The supervisor connects through a command such as ssh or srun whose standard streams
// are those of `carry` (reach.h).
//
// Standard input is one line of JSON, the parcel, followed by lines "signal NUMBER". End of input
// means that the supervisor or the connection is gone. If the supervisor is gone, the master ends
// the job with all its processes. If the connection is gone, the supervisor starts a replacement,
// and until the replacement has arrived the job may still use this process. So `carry` does not act
// at once; it kills a process that is still running five minutes later. Secrets come in the parcel,
// so no command line and no shell environment contains them.
#ifndef BELFRY_LAUNCH_SUPERVISE_CARRY_H
#define BELFRY_LAUNCH_SUPERVISE_CARRY_H

#include "launch/task/task.h"

typedef struct bel_parcel {
    const char *program;      // path, "~/": the remote home; "": the program that runs `carry`
    char *const *arguments;   // starts with the program's name; ends with NULL
    char *const *environment; // "NAME=value", added to the host's; ends with NULL
    char *const *moved;       // pairs of a flag's name ("package") and its remote file ("~/" as
                              // above); ends with NULL; NULL: none
    const char *folder;       // working directory
    const bel_task *task;     // its supervisor becomes the process that runs `carry`
} bel_parcel;

// Appends the parcel with its newline.
void bel_parcel_write(const bel_parcel *parcel, bel_str *out);

// Reads a parcel from standard input and runs its process to the end. *out_exit_code is the
// process's exit code, or 128 + the signal number if a signal killed it. Returns only errors of
// starting; INVALID_ARGUMENT: no parcel.
bel_status *bel_carry(int *out_exit_code) BEL_MUST_USE;

#endif
