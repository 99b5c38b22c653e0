// Which cards the towers of a process use.
#ifndef BELFRY_CUDA_CHOOSE_H
#define BELFRY_CUDA_CHOOSE_H

#include "runtime/program.h"

typedef struct bel_card_choice {
    bool wanted;       // cards where there are any; false: the CPU alone
    bool needed;       // no cards are an error
    bool optional;     // cards that cannot be used are as good as none; false: they are an error
    bel_gpu_math math; // of the programs; for others than EXACT the libraries are opened as well
    bool shared;       // several towers may use one card
    const char *list;  // "0,2": these cards of the machine; NULL: all, in the order of the PCI bus
    double patience_secs; // with a run before the card counts as lost; 0: a few minutes
    size_t memory_limit;  // of each card, for programs of this process; 0: what there is
    int before; // towers of the job's other processes or workers of this host that come first
    bool own;   // CUDA_VISIBLE_DEVICES may leave this process cards that no other one sees
    // Of trainings that run side by side, each with cards of its own as far as there are enough:
    // that in place `place` begins with card count * place / places. places 0: there is this one.
    int place, places;
} bel_card_choice;

// Fills out_devices [towers]; NULL is a share of the CPU, which all are where no cards are wanted
// or, with a line in the log, where there are none. Where a process is given cards of its own
// (CUDA_VISIBLE_DEVICES) and sees enough of them for itself, `before` is not looked at.
// INVALID_ARGUMENT: a malformed list. OUT_OF_RANGE: fewer cards than towers, or than the list
// names. NOT_FOUND: they are needed. FAILED_PRECONDITION: one cannot multiply so. Or they cannot be
// used: errors of bel_cuda_open_api and bel_cuda_open_fast; INTERNAL behind a lost one.
bel_status *bel_cards_choose(const bel_card_choice *choice, int towers,
                             bel_device **out_devices) BEL_MUST_USE;

// Writes that line now, if there are none, for towers in other processes on this host.
void bel_cards_say_whether(const bel_card_choice *choice);

// INVALID_ARGUMENT: a malformed list; whether the cards are there is not looked at.
bel_status *bel_cards_check_list(const char *list) BEL_MUST_USE;

// How many cards of the list there are; 0: none, or they cannot be used.
int bel_cards_count(const char *list);

// A choice could not be met before, by an error: cards are fewer than they are to be, say.
bool bel_cards_were_refused(void);

#endif
