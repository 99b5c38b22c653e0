// Fuzz target for WAV files. An accepted sound has a rate and finite samples. A short one is
// resampled if that needs no large table.
#include <math.h>

#include "belfry/features.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bel_wave wave, other;
    if (!fuzz_is_good(bel_wave_parse(data, size, "x.wav", &wave))) return 0;
    fuzz_expect(wave.sample_count > 0 && wave.sample_rate > 0, "a sound of some length and rate");
    fuzz_expect((uint64_t)wave.sample_count <= size, "a byte for each sample");
    for (int64_t i = 0; i < wave.sample_count; i++)
        fuzz_expect(isfinite(wave.samples[i]), "finite samples");
    if (wave.sample_count <= 256 && wave.sample_rate % 25 == 0) {
        if (fuzz_is_good(bel_wave_resample(&wave, 8000, &other))) bel_wave_deinit(&other);
    }
    bel_wave_deinit(&wave);
    return 0;
}
