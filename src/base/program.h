// Other programs: find one as a shell does, run it to its end, read its output, exec it.
#ifndef BELFRY_BASE_PROGRAM_H
#define BELFRY_BASE_PROGRAM_H

#include "belfry/status.h"

// Finds the absolute path of an executable file: of `name` if it has a slash, else of the first of
// that name in $PATH. Free with bel_free. NOT_FOUND, PERMISSION_DENIED.
bel_status *bel_program_find(const char *name, char **out_path) BEL_MUST_USE;

// Returns the absolute path, for a reader in another folder. Free with bel_free.
char *bel_absolute_path(const char *path);

// Runs a program to its end, with its output on stderr. `arguments`: its name first, NULL at the
// end. ABORTED: it failed; DEADLINE_EXCEEDED: it exceeded `most_secs`, and was killed.
bel_status *bel_program_run(char *const *arguments, int most_secs) BEL_MUST_USE;

// Runs a program and returns its standard output, up to 16 MiB, in *out_text. `input`: the text of
// its standard input, or NULL. ABORTED: its exit code was not 0; the message then ends with the
// last line of its standard error. NOT_FOUND; DEADLINE_EXCEEDED as above. Free with bel_free. If
// this process exits while another thread asks, each program that is asked, and its group, are
// killed: also one that submits or cancels a job.
bel_status *bel_program_ask(char *const *arguments, const char *input, int most_secs,
                            char **out_text) BEL_MUST_USE;

// Replaces this process by the program, with the current environment; returns only an error.
bel_status *bel_program_become(const char *path, char *const *arguments) BEL_MUST_USE;

#endif
