// Compiled kernels of the stand-in are kept in the build folder. BELFRY_TEST_CACHE names another
// folder, as one build's kernels also fit other builds (tools/check).
#include "support/cards.h"

#include <stdio.h>
#include <stdlib.h>

#include "cuda/api.h"

void bel_use_cards(void)
{
    const char *real = getenv("BELFRY_TEST_CARD");
    if (real != NULL && real[0] == '1') return;
    setenv(BEL_CUDA_PATH_VARIABLE, BEL_CUDA_DOUBLE_DIR, 1);
    const char *cache = getenv("BELFRY_TEST_CACHE");
    setenv("XDG_CACHE_HOME", cache != NULL ? cache : BEL_CUDA_DOUBLE_DIR "/cache", 1);
}

bool bel_cards_open(bel_device **out_card)
{
    bel_status *status = bel_cuda_device_get(0, out_card);
    if (status == NULL) return true;
    fprintf(stderr, "no GPU: %s\n", bel_status_message(status));
    bel_status_destroy(status);
    return false;
}
