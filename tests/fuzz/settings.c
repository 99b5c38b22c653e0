// Fuzz target for settings in YAML (--config_file), against the command's table of flags. Accepted
// settings are dumped, and the dump is read to the same dump.
#include <string.h>

#include "base/options.h"
#include "base/str.h"
#include "command/flags.h"
#include "fuzz/fuzz.h"

static bool read(const uint8_t *data, size_t size, bel_str *out_dump)
{
    bel_options *options = bel_flags_create(BEL_VERB_TRAIN_AND_EVALUATE);
    bool good = fuzz_is_good(bel_options_read_yaml(options, fuzz_file(0, data, size)));
    if (good) bel_options_dump(options, out_dump);
    bel_options_destroy(options);
    return good;
}

// Copies a dump without the origins: each line ends with its value's origin, after the last " # ".
static size_t without_origins(const bel_str *dump, bel_str *out)
{
    for (const char *line = dump->text; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n'), *cut = end;
        if (end == NULL) break;
        for (const char *at = line; at < end - 1; at++)
            if (at[0] == ' ' && at[1] == '#') cut = at;
        bel_str_append(out, line, (size_t)(cut - line));
        bel_str_puts(out, "\n");
        line = end + 1;
    }
    return out->length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bel_str first = {0}, second = {0}, plain = {0}, again = {0};
    if (read(data, size, &first)) {
        fuzz_expect(read((const uint8_t *)first.text, first.length, &second),
                    "settings that were dumped are read");
        bool same = without_origins(&first, &plain) == without_origins(&second, &again) &&
                    (plain.length == 0 || memcmp(plain.text, again.text, plain.length) == 0);
        fuzz_expect(same, "the same settings, dumped again");
    }
    bel_str_deinit(&first);
    bel_str_deinit(&second);
    bel_str_deinit(&plain);
    bel_str_deinit(&again);
    return 0;
}
