// Stubs for a build without CUDA (BELFRY_CUDA=OFF), instead of all other files of this folder.
// There are no GPUs, and a caller that needs one gets an error. If GPUs are optional, the CPU is
// used, as on a machine without GPUs.
#include "base/number.h"
#include "cuda/cuda.h"
#include "cuda/updater.h"

static bel_status *absent(void)
{
    return BEL_ERR(BEL_NOT_FOUND, "this Belfry was built without CUDA (BELFRY_CUDA=OFF)");
}

bool bel_cuda_is_built(void)
{
    return false;
}

bel_status *bel_cuda_count(int *out_count)
{
    *out_count = 0;
    return absent();
}

bel_status *bel_cuda_card_at(int index, bel_cuda_card *out_card)
{
    (void)index, (void)out_card;
    return absent();
}

bel_status *bel_cuda_device_get(int index, bel_device **out_device)
{
    (void)index, (void)out_device;
    return absent();
}

bool bel_cuda_has_lost_card(void)
{
    return false;
}

const char *bel_cuda_why_lost(void)
{
    return NULL;
}

void bel_cuda_note_lost(const char *card, const char *why)
{
    (void)card, (void)why;
}

bel_status *bel_cuda_open_fast(char text[BEL_CUDA_TEXT])
{
    (void)text;
    return absent();
}

bel_status *bel_cuda_updater_create(bel_device *const *devices, int towers, int replicas,
                                    int64_t elements, bel_updater **out_updater)
{
    (void)devices, (void)towers, (void)replicas, (void)elements, (void)out_updater;
    return absent();
}

const char *bel_cuda_version_text(char text[BEL_CUDA_TEXT])
{
    bel_snprintf(text, BEL_CUDA_TEXT, "built without CUDA");
    return text;
}
