// GPUs as devices (runtime/device.h): cuda:0, cuda:1, … in the order of the PCI bus, or as
// CUDA_VISIBLE_DEVICES leaves them. A build with BELFRY_CUDA=OFF has none.
#ifndef BELFRY_CUDA_CUDA_H
#define BELFRY_CUDA_CUDA_H

#include "runtime/program.h"

enum {
    BEL_CUDA_MOST_CARDS = 64, // on a machine; the rest is ignored
    BEL_CUDA_TEXT = 320,      // bytes of the texts below
};

typedef struct bel_cuda_card {
    char name[96], pci[16];
    size_t memory_bytes;
    int major, minor; // compute capability
} bel_cuda_card;

// False: built with BELFRY_CUDA=OFF.
bool bel_cuda_is_built(void);

// Counts the GPUs. Without usable GPUs the count is 0 and the status says why; errors as of
// bel_cuda_open_api.
bel_status *bel_cuda_count(int *out_count) BEL_MUST_USE;

bel_status *bel_cuda_card_at(int index, bel_cuda_card *out_card) BEL_MUST_USE;

// The device of GPU `index`, the same for every caller. It lives until the process ends. Errors:
// OUT_OF_RANGE: there are fewer; those of bel_cuda_open_api; the driver's.
bel_status *bel_cuda_device_get(int index, bel_device **out_device) BEL_MUST_USE;

// True when a GPU of this process no longer runs anything: bel_device_is_lost, or the driver
// reported it before or between runs.
bool bel_cuda_has_lost_card(void);

// The reason for the first loss. "cuda:0: CUDA cannot run a program: ..." once a wait has found it;
// before that the driver's text, without a name. NULL: no GPU is lost.
const char *bel_cuda_why_lost(void);

// Keeps a copy of the first reason, for bel_cuda_why_lost, with the device's name; NULL: unknown
// device.
void bel_cuda_note_lost(const char *card, const char *why);

// Opens cuBLASLt and cuDNN, for fast arithmetic (bel_gpu_math); once per process, after any of the
// above. FAILED_PRECONDITION: one of them or a function is missing, or it is too old; says which,
// and what to install. `text`: "cuBLASLt 13.0, cuDNN 9.1"; NULL to skip.
bel_status *bel_cuda_open_fast(char text[BEL_CUDA_TEXT]) BEL_MUST_USE;

// "driver 12.9, NVRTC 12.9", or the reason why there are no GPUs. Returns `text`.
const char *bel_cuda_version_text(char text[BEL_CUDA_TEXT]);

#endif
