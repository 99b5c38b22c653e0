// Other programs: finding them as a shell does, running one to its end, asking one, becoming one.
#ifndef BELFRY_BASE_PROGRAM_H
#define BELFRY_BASE_PROGRAM_H

#include "belfry/status.h"

// The absolute path of an executable file: of `name` where it has a slash, else of the first of
// that name in $PATH. Free with bel_free. NOT_FOUND, PERMISSION_DENIED.
bel_status *bel_program_find(const char *name, char **out_path) BEL_MUST_USE;

// The path from the root, for whoever reads it in another folder. Free with bel_free.
char *bel_absolute_path(const char *path);

// Runs a program, whose output is shown on stderr, to its end. `arguments`: its name first, NULL at
// the end. ABORTED: it failed; DEADLINE_EXCEEDED: it took longer than `most_secs`, and was killed.
bel_status *bel_program_run(char *const *arguments, int most_secs) BEL_MUST_USE;

// What a program says. `input`: the text of its standard input, or NULL. *out_text is its standard
// output, up to 16 MiB. ABORTED: its exit code was not 0: then the message ends with the last line
// of its standard error. NOT_FOUND; DEADLINE_EXCEEDED as above. Free with bel_free.
bel_status *bel_program_ask(char *const *arguments, const char *input, int most_secs,
                            char **out_text) BEL_MUST_USE;

// This process becomes the program, with the environment as it is by then; returns only an error.
bel_status *bel_program_become(const char *path, char *const *arguments) BEL_MUST_USE;

#endif
