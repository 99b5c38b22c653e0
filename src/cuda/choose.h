// Choice of the GPUs that the towers of a process use.
#ifndef BELFRY_CUDA_CHOOSE_H
#define BELFRY_CUDA_CHOOSE_H

#include "runtime/program.h"

typedef struct bel_card_choice {
    bool wanted;       // GPUs if there are any; false: only the CPU
    bool needed;       // having no GPU is an error
    bool optional;     // unusable GPUs count as absent; false: they are an error
    bel_gpu_math math; // the programs' arithmetic; all but EXACT also open the libraries
    bool shared;       // several towers may use one GPU
    const char *list;  // "0,2": these GPUs of the machine; NULL: all, in the order of the PCI bus
    double patience_secs; // wait for a run before the GPU counts as lost; 0: a few minutes
    size_t memory_limit;  // for programs of this process on each GPU; 0: all there is
    // Towers of other processes of the job, or of other workers of this host, that come first.
    int before;
    bool own; // CUDA_VISIBLE_DEVICES may give this process GPUs that no other process sees
    // For trainings that run side by side, on different GPUs as far as there are enough. The
    // training at place `place` starts with GPU count * place / places. places 0: there is only
    // this one.
    int place, places;
} bel_card_choice;

// Fills out_devices [towers]. NULL is a share of the CPU. All are NULL if no GPUs are wanted or,
// with a line in the log, if the machine has no GPU. If CUDA_VISIBLE_DEVICES gives this process
// enough separate GPUs, `before` is ignored.
//
// Errors: INVALID_ARGUMENT: a malformed list. OUT_OF_RANGE: fewer GPUs than towers, or than the
// list names. NOT_FOUND: GPUs are needed and absent. FAILED_PRECONDITION: a GPU cannot multiply in
// that way. For unusable GPUs, errors of bel_cuda_open_api and bel_cuda_open_fast. INTERNAL: a GPU
// of this process was lost.
bel_status *bel_cards_choose(const bel_card_choice *choice, int towers,
                             bel_device **out_devices) BEL_MUST_USE;

// Logs now that there are no GPUs, if so, for towers in other processes on this host.
void bel_cards_say_whether(const bel_card_choice *choice);

// INVALID_ARGUMENT: a malformed list. Does not check whether the GPUs are there.
bel_status *bel_cards_check_list(const char *list) BEL_MUST_USE;

// Number of GPUs of the list; 0: none, or they cannot be used.
int bel_cards_count(const char *list);

// True after a choice failed, for example because there were fewer GPUs than wanted.
bool bel_cards_were_refused(void);

#endif
