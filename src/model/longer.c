// Differences of a longer training. Records keep their places with more epochs, so only the count
// in the fingerprint differs. A schedule ends with the training unless a flag sets its steps: then
// "decay_over" is among the parameters, and a longer training has a longer schedule.
#include "model/longer.h"

#include <string.h>

#include "base/number.h"
#include "base/str.h"
#include "belfry/dataset.h"

static const char decay_steps[] = "param.decay_steps";

static bool longer_parse(const char *text, int64_t *out_number)
{
    return text != NULL && bel_parse_i64(text, strlen(text), out_number);
}

static const char *own(const bel_settings *settings, const char *name)
{
    for (int i = 0; i < settings->count; i++)
        if (strcmp(settings->names[i], name) == 0) return settings->values[i];
    return NULL;
}

static bool has_more_epochs(const bel_input *input, const bel_ckpt_reader *reader)
{
    const char *fingerprint = bel_ckpt_setting(reader, BEL_SETTING_INPUT);
    int64_t was, is = bel_input_epochs(input);
    char text[32];
    if (!longer_parse(bel_ckpt_setting(reader, BEL_SETTING_EPOCHS), &was) || was < 1) return false;
    if (fingerprint == NULL || (is != BEL_REPEAT_FOREVER && is <= was)) return false;
    bel_snprintf(text, sizeof text, BEL_SETTING_FINGERPRINT,
                 (unsigned long long)bel_input_fingerprint_of_epochs(input, was));
    return strcmp(text, fingerprint) == 0;
}

static bool has_longer_schedule(const bel_settings *settings, const bel_ckpt_reader *reader)
{
    int64_t was, is;
    return own(settings, BEL_SETTING_DECAY_OVER) != NULL &&
           bel_ckpt_setting(reader, BEL_SETTING_DECAY_OVER) != NULL &&
           longer_parse(bel_ckpt_setting(reader, decay_steps), &was) &&
           longer_parse(own(settings, decay_steps), &is) && is > was;
}

static void longer_note(bel_str *list, const char *name, const char *was, const char *is)
{
    if (list != NULL) bel_setting_note_difference(list, name, was, is);
}

const char *bel_longer_value(const bel_settings *settings, int i, const bel_input *input,
                             const bel_ckpt_reader *reader, bel_str *list)
{
    const char *name = settings->names[i], *is = settings->values[i];
    const char *was = bel_ckpt_setting(reader, name);
    if (was == NULL || strcmp(was, is) == 0) return is;
    if (strcmp(name, BEL_SETTING_INPUT) == 0 && has_more_epochs(input, reader)) {
        const char *forever = bel_input_epochs(input) == BEL_REPEAT_FOREVER ? "without end" : NULL;
        longer_note(list, BEL_SETTING_EPOCHS, bel_ckpt_setting(reader, BEL_SETTING_EPOCHS),
                    forever != NULL ? forever : own(settings, BEL_SETTING_EPOCHS));
        return was;
    }
    if (strcmp(name, decay_steps) == 0 && has_longer_schedule(settings, reader)) {
        longer_note(list, "the end of the schedule", was, is);
        return was;
    }
    // Its text includes the steps; any other difference is in a parameter.
    if (strcmp(name, "schedule") == 0 && has_longer_schedule(settings, reader)) return was;
    return is;
}
