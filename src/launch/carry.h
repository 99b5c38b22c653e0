// The far end of a supervisor: on another host this program's verb `carry` starts a process of the
// job, passes on what it is told, and ends as the process does. Nothing of Belfry runs on a host
// beforehand: the way there is a command whose standard input, output and error reach this one,
// such as ssh or srun (reach.h).
//
// Its standard input is a line of JSON, the parcel, and then lines "signal NUMBER". When it ends,
// the supervisor or the way to it is gone. Where it is the supervisor, the master ends the job and
// all of its processes; where it is the way, another process is being started in this one's place,
// and until that has come the job may go on with this one. So nothing is done at once; a process
// that has not ended five minutes later is killed. Secrets come with the parcel, so that they are
// on no command line and in no environment of a shell's.
#ifndef BELFRY_LAUNCH_CARRY_H
#define BELFRY_LAUNCH_CARRY_H

#include "launch/task.h"

typedef struct bel_parcel {
    const char *program;      // path, "~/" is the home over there; "": that which runs `carry`
    char *const *arguments;   // the program's name first, NULL at the end
    char *const *environment; // "NAME=value", set beside what the host has; NULL at the end
    char *const *moved;       // pairs: a flag's name ("package"), and the file that it names over
                              // there, "~/" as above; NULL at the end, NULL: none
    const char *folder;       // in which it runs
    const bel_task *task;     // whose supervisor becomes the process that runs `carry`
} bel_parcel;

// Appends the parcel with its newline.
void bel_parcel_write(const bel_parcel *parcel, bel_str *out);

// Runs a process as standard input says, to its end. *out_exit_code is the process's, 128 + the
// signal's number when it was killed. Errors are those of starting; INVALID_ARGUMENT: no parcel.
bel_status *bel_carry(int *out_exit_code) BEL_MUST_USE;

#endif
