// Verb new: creates a folder with a package that builds, trains, can be submitted and is tested
// without changes. The files are tools/template/, which the build embeds in this program
// (templates.h); @NAME@ in their texts and names stands for the package's name. No file is
// overwritten: the folder must not exist.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "command/results.h"
#include "command/verbs.h"
#include "package/templates.h"

static const char placeholder[] = "@NAME@";

// Appends the text with the name instead of each placeholder.
static void fill_in(const char *text, size_t length, const char *name, bel_str *out)
{
    size_t skip = sizeof placeholder - 1;
    bel_str_puts(out, "");
    for (size_t i = 0; i < length; i++) {
        if (length - i >= skip && memcmp(text + i, placeholder, skip) == 0) {
            bel_str_puts(out, name);
            i += skip - 1;
        } else {
            bel_str_append(out, text + i, 1);
        }
    }
}

static bel_status *write_template(const bel_template *template, const char *folder,
                                  const char *name)
{
    bool is_model = strcmp(template->name, "model.c") == 0;
    char *file = is_model ? bel_strf("%s.c", name) : bel_xstrdup(template->name);
    char *path = bel_path_join(folder, file);
    bel_str text = {0};
    fill_in((const char *)template->bytes, template->size, name, &text);
    bel_status *status = bel_file_write_atomic(path, text.text, text.length);
    if (status == NULL && template->is_program && chmod(path, 0755) != 0) {
        status = BEL_ERR(BEL_UNKNOWN, "cannot make %s executable", path);
    }
    bel_str_deinit(&text);
    bel_free(path);
    bel_free(file);
    return status;
}

// Returns true if the name is valid in C, for a file, and for a CMake target.
static bool is_good(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    static const char more[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    return name[0] != '\0' && strchr(letters, name[0]) != NULL &&
           strspn(name, more) == strlen(name) && strlen(name) <= 60;
}

bel_status *bel_verb_new(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code;
    size_t count;
    const char *const *arguments = bel_options_arguments(options, &count);
    if (count != 1 || !is_good(arguments[0])) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "expected one name of small letters, digits and underscores, which begins "
                       "with a letter, got %s",
                       count == 0  ? "nothing"
                       : count > 1 ? "several"
                                   : arguments[0]);
    }
    const char *name = arguments[0];
    if (bel_file_exists(name)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s is there already; nothing was changed", name);
    }
    BEL_TRY(bel_dir_create(name));
    for (size_t i = 0; i < bel_template_count; i++)
        BEL_TRY(write_template(&bel_templates[i], name, name));
    char *text = bel_strf("%s/%s.c is the model; %s/README.md says how it is trained and tested\n",
                          name, name, name);
    bel_status *status = bel_results_write(text);
    bel_free(text);
    return status;
}
