// Private interface of audio features, for the map.
#ifndef BELFRY_FEATURES_AUDIO_H
#define BELFRY_FEATURES_AUDIO_H

#include "belfry/features.h"

// The sample rate that waves must have.
int64_t bel_audio_sample_rate(const bel_audio *audio);

#endif
