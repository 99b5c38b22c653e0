// Broken inner invariants end the process with the place. Nothing that comes from users, files or
// peers may reach BEL_CHECK; such input gets a bel_status.
#ifndef BELFRY_BASE_CHECK_H
#define BELFRY_BASE_CHECK_H

_Noreturn void bel_check_failed(const char *what, const char *file, int line);

#define BEL_CHECK(condition)                                                                       \
    ((condition) ? (void)0 : bel_check_failed(#condition " does not hold", __FILE__, __LINE__))

// A place that is never reached; `text` says why.
#define BEL_UNREACHABLE(text) bel_check_failed(text, __FILE__, __LINE__)

#endif
