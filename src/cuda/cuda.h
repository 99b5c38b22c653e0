// Cards as devices (runtime/device.h): cuda:0, cuda:1, … in the order of the PCI bus, or as
// CUDA_VISIBLE_DEVICES leaves them. Built with BELFRY_CUDA=OFF there are none.
#ifndef BELFRY_CUDA_CUDA_H
#define BELFRY_CUDA_CUDA_H

#include "runtime/program.h"

enum {
    BEL_CUDA_MOST_CARDS = 64, // of a machine; more are not seen
    BEL_CUDA_TEXT = 320,      // bytes of texts below
};

typedef struct bel_cuda_card {
    char name[96], pci[16];
    size_t memory_bytes;
    int major, minor; // compute capability
} bel_cuda_card;

// False: built with BELFRY_CUDA=OFF.
bool bel_cuda_is_built(void);

// How many cards there are. 0, and a status that says why, where there are none or they cannot be
// used; errors as of bel_cuda_open_api.
bel_status *bel_cuda_count(int *out_count) BEL_MUST_USE;

bel_status *bel_cuda_card_at(int index, bel_cuda_card *out_card) BEL_MUST_USE;

// The device of card `index`, the same for every caller; it stays until the process ends. Errors:
// OUT_OF_RANGE: there are fewer; those of bel_cuda_open_api; the driver's.
bel_status *bel_cuda_device_get(int index, bel_device **out_device) BEL_MUST_USE;

// A card of this process does not run anything any more: bel_device_is_lost, or the driver has said
// so of a card before or between runs.
bool bel_cuda_has_lost_card(void);

// What has shown it, "cuda:0: CUDA cannot run a program: ...", of the first card of which a wait
// has, and until then as the driver has said it, without a name; NULL: none is lost.
const char *bel_cuda_why_lost(void);

// Keeps a copy of the first for it. `card` is a device's name; NULL: nobody knows of which.
void bel_cuda_note_lost(const char *card, const char *why);

// cuBLASLt and cuDNN, for fast arithmetic (bel_gpu_math); opened once per process, after any of the
// above. FAILED_PRECONDITION: one is missing, a function of it is, or it is too old; says which,
// and what to install. `text`: "cuBLASLt 13.0, cuDNN 9.1"; NULL: not wanted.
bel_status *bel_cuda_open_fast(char text[BEL_CUDA_TEXT]) BEL_MUST_USE;

// "driver 12.9, NVRTC 12.9", or why there are no cards. `text` is returned.
const char *bel_cuda_version_text(char text[BEL_CUDA_TEXT]);

#endif
