// Assertions: a broken internal invariant ends the process with its place. Input from users, files
// or peers must never reach BEL_CHECK; invalid input gets a bel_status.
#ifndef BELFRY_BASE_CHECK_H
#define BELFRY_BASE_CHECK_H

_Noreturn void bel_check_failed(const char *what, const char *file, int line);

#define BEL_CHECK(condition)                                                                       \
    ((condition) ? (void)0 : bel_check_failed(#condition " does not hold", __FILE__, __LINE__))

// A place that is never reached; `text` gives the reason.
#define BEL_UNREACHABLE(text) bel_check_failed(text, __FILE__, __LINE__)

#endif
