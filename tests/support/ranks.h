// Ranks of the DDL calls as children of a test. A child calls no function of cmocka's: a failed
// check ends it with a line on stderr and the check's line number.
#ifndef BELFRY_TESTS_SUPPORT_RANKS_H
#define BELFRY_TESTS_SUPPORT_RANKS_H

#include <sys/types.h>

#include "belfry/ddl.h"

// Body of a rank; returns its exit status, 0 on success.
typedef int (*bel_rank_body)(int rank, int size);

// Returns a new job's secret word, and sets the address of its rank 0 in the environment. A
// connection to the address succeeds as soon as a process listens there.
const char *bel_new_job(void);
int bel_connect_to_job(void);

// Starts a rank of `size`; `local_size` of them are said to share a host.
pid_t bel_start_rank(bel_rank_body body, int rank, int size, int local_size, const char *job);
int bel_exit_of(pid_t child); // 128 + the signal if one ended it
void bel_run_ranks(bel_rank_body body, int size, int local_size); // all must exit with 0

// In a rank.
void bel_need(bool holds, const char *what, int line);
void bel_need_ok(bel_status *status, int line);
void bel_need_fails(bel_status *status, bel_code code, const char *part, int line);
#define NEED(condition) bel_need((condition), #condition, __LINE__)
#define NEED_OK(expression) bel_need_ok((expression), __LINE__)
#define NEED_FAILS(expression, code, part) bel_need_fails((expression), (code), (part), __LINE__)

bel_ddl *bel_begin_rank(void); // with the default options and 60 seconds
bel_tensor bel_vector(bel_dtype dtype, int64_t n, void *data);

// Elements of tensors of several types, whose sums are exact.
int64_t bel_rank_number(int rank, int64_t i); // rank's element i
void bel_fill_tensor(const bel_tensor *tensor, int rank);
double bel_tensor_element(const bel_tensor *tensor, int64_t i);

// Sizes from 0 to several slots, cut at odd places; then many tensors of mixed sizes and types.
int bel_sum_sizes(int rank, int size);
int bel_sum_mixed(int rank, int size);
int bel_spread_values(int rank, int size); // broadcasts rank 0's

#endif
