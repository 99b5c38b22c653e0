// The model folder: lists checkpoints, removes old ones, and cleans up after dead runs. The name
// defines the state of a folder, so listing needs no open or lock, and a kill at any moment leaves
// a valid name (folder.h).
//
// Only the job's master removes folders. It removes a temporary folder whose generation and
// incarnation are not above the master's: a master that was replaced must not remove its
// successor's. A folder that cannot be removed is reported, stays, and is tried again at the next
// save.
#include "checkpoint/folder.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"

static const char prefix[] = "ckpt-";
static const char replaced_suffix[] = ".replaced";
static const char removed_suffix[] = ".removed";

char *bel_ckpt_folder_path(const char *model_dir, int64_t step)
{
    char *name = bel_strf("%s%08lld", prefix, (long long)step);
    char *path = bel_path_join(model_dir, name);
    bel_free(name);
    return path;
}

char *bel_ckpt_find_folder(const char *model_dir, int64_t step)
{
    char *folder = bel_ckpt_folder_path(model_dir, step);
    char *replaced = bel_strf("%s%s", folder, replaced_suffix);
    bool aside = !bel_file_exists(folder) && bel_file_exists(replaced);
    bel_free(aside ? folder : replaced);
    return aside ? replaced : folder;
}

// --- Stepping aside -----------------------------------------------------------------------------

// Renames `from`, replacing `to`. If `to` is a folder that cannot be removed, it is renamed and
// removed later: leftovers make no save fail.
static bel_status *rename_if_there(const char *from, const char *to)
{
    enum { MOST_NAMES = 1000 };
    if (!bel_file_exists(from)) return NULL;
    bel_status *status = bel_dir_remove(to);
    for (int i = 1; status != NULL && bel_file_exists(to) && i < MOST_NAMES; i++) {
        char *other = bel_strf("%s%s%d", to, removed_suffix, i);
        bool moved = !bel_file_exists(other) && rename(to, other) == 0;
        bel_free(other);
        if (moved) break;
    }
    if (bel_file_exists(to)) return status;
    bel_status_ignore(status); // `to` is free
    return bel_file_rename(from, to);
}

bel_status *bel_ckpt_step_aside(const char *folder)
{
    char *replaced = bel_strf("%s%s", folder, replaced_suffix);
    bel_status *status = rename_if_there(folder, replaced);
    bel_free(replaced);
    return status;
}

bel_status *bel_ckpt_step_back(const char *folder)
{
    char *replaced = bel_strf("%s%s", folder, replaced_suffix);
    bel_status *status = bel_file_exists(folder) ? NULL : rename_if_there(replaced, folder);
    bel_free(replaced);
    return status;
}

bel_status *bel_ckpt_remove_replaced(const char *folder)
{
    char *replaced = bel_strf("%s%s", folder, replaced_suffix);
    bel_status *status = bel_dir_remove(replaced);
    bel_free(replaced);
    return status;
}

// --- Names --------------------------------------------------------------------------------------

// Reads decimal digits and advances. Returns false if there are no digits or too many.
static bool take_number(const char **text, int64_t *out_number)
{
    size_t digits = strspn(*text, "0123456789");
    if (!bel_parse_i64(*text, digits, out_number)) return false;
    *text += digits;
    return true;
}

static bool take_word(const char **text, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0) return false;
    *text += length;
    return true;
}

// Splits "ckpt-00001000…" into the step and the rest.
static bool parse_name(const char *name, int64_t *out_step, const char **out_rest)
{
    if (!take_word(&name, prefix) || strspn(name, "0123456789") < 8) return false;
    if (!take_number(&name, out_step)) return false;
    *out_rest = name;
    return true;
}

static bool is_checkpoint(const char *name, int64_t *out_step)
{
    const char *rest;
    return parse_name(name, out_step, &rest) &&
           (rest[0] == '\0' || strcmp(rest, replaced_suffix) == 0);
}

bool bel_ckpt_step_of_folder(const char *folder, int64_t *out_step)
{
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && folder[begin - 1] != '/')
        begin--;
    char *name = bel_xstrndup(folder + begin, end - begin);
    bool named = is_checkpoint(name, out_step);
    bel_free(name);
    return named;
}

// Matches ".removed", and ".replaced" or ".removed" followed by ".removed" and a number, for a name
// that was taken.
static bool is_removed(const char *rest)
{
    if (strcmp(rest, removed_suffix) == 0) return true;
    if (!take_word(&rest, replaced_suffix) && !take_word(&rest, removed_suffix)) return false;
    int64_t number;
    return take_word(&rest, removed_suffix) && take_number(&rest, &number) && rest[0] == '\0';
}

// Whether a folder is obsolete: an interrupted removal, a replaced checkpoint whose successor is in
// place, or the temporary folder of a master that is not younger than this one. A master writes one
// checkpoint at a time, so this master's folder is the leftover of a failure.
static bool is_leftover(const char *model_dir, const char *name, int64_t generation,
                        int64_t incarnation)
{
    int64_t step, its_generation, its_incarnation;
    const char *rest;
    if (!parse_name(name, &step, &rest)) return false;
    if (is_removed(rest)) return true;
    if (strcmp(rest, replaced_suffix) == 0) {
        char *folder = bel_ckpt_folder_path(model_dir, step);
        bool succeeded = bel_file_exists(folder);
        bel_free(folder);
        return succeeded;
    }
    return take_word(&rest, ".tmp-g") && take_number(&rest, &its_generation) &&
           take_word(&rest, "-i") && take_number(&rest, &its_incarnation) && rest[0] == '\0' &&
           (its_generation < generation ||
            (its_generation == generation && its_incarnation <= incarnation));
}

void bel_ckpt_say_stays(bel_log_level level, bel_status *status)
{
    if (status == NULL) return;
    bel_log_write(level, "%s: it stays where it is", bel_status_message(status));
    bel_status_destroy(status);
}

// A folder that cannot be removed is no error. For an interrupted removal (".removed") the remover
// already warned.
static bel_status *remove_leftovers(const char *model_dir, int64_t generation, int64_t incarnation)
{
    char **names;
    size_t count;
    BEL_TRY(bel_dir_list(model_dir, &names, &count));
    for (size_t i = 0; i < count; i++) {
        if (!is_leftover(model_dir, names[i], generation, incarnation)) continue;
        char *path = bel_path_join(model_dir, names[i]);
        bool said = strstr(names[i], removed_suffix) != NULL;
        bel_ckpt_say_stays(said ? BEL_LOG_DEBUG : BEL_LOG_WARN, bel_dir_remove(path));
        bel_free(path);
    }
    bel_dir_names_free(names, count);
    return NULL;
}

// --- Beginning and listing ----------------------------------------------------------------------

bel_status *bel_ckpt_begin(const char *model_dir, int64_t step, int64_t generation,
                           int64_t incarnation, char **out_folder)
{
    if (step < 0 || generation < 0 || incarnation < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "checkpoint in %s: expected step, generation and incarnation from 0 up, got "
                       "%lld, %lld, %lld",
                       model_dir, (long long)step, (long long)generation, (long long)incarnation);
    }
    BEL_TRY(bel_dir_create(model_dir));
    BEL_TRY(remove_leftovers(model_dir, generation, incarnation));
    char *path = bel_ckpt_folder_path(model_dir, step);
    char *folder =
        bel_strf("%s.tmp-g%lld-i%lld", path, (long long)generation, (long long)incarnation);
    bel_free(path);
    bel_status *status = bel_dir_remove(folder); // unlike other leftovers it blocks the save
    if (status == NULL) status = bel_dir_create(folder);
    if (status != NULL) {
        bel_free(folder);
        return status;
    }
    *out_folder = folder;
    return NULL;
}

bel_status *bel_ckpt_list(const char *model_dir, int64_t **out_steps, size_t *out_count)
{
    char **names = NULL;
    size_t name_count = 0, count = 0;
    if (bel_file_exists(model_dir)) BEL_TRY(bel_dir_list(model_dir, &names, &name_count));
    int64_t *steps = bel_xcalloc(name_count, sizeof *steps);
    for (size_t i = 0; i < name_count; i++) {
        int64_t step;
        if (!is_checkpoint(names[i], &step)) continue;
        // Nearly sorted already: only steps of more than 8 digits come before smaller ones.
        size_t place = count;
        while (place > 0 && steps[place - 1] > step)
            place--;
        if (place > 0 && steps[place - 1] == step) continue; // in place and stepped aside
        memmove(steps + place + 1, steps + place, (count - place) * sizeof *steps);
        steps[place] = step;
        count++;
    }
    bel_dir_names_free(names, name_count);
    *out_steps = steps;
    *out_count = count;
    return NULL;
}

// --- Removal ------------------------------------------------------------------------------------

// Renames before it removes, so that no reader sees a partial checkpoint.
static bel_status *remove_in_one(const char *folder, const char *removed)
{
    BEL_TRY(rename_if_there(folder, removed));
    return bel_dir_remove(removed);
}

// Removes the one that stepped aside first: otherwise a kill in between would restore it.
bel_status *bel_ckpt_remove(const char *model_dir, int64_t step)
{
    char *folder = bel_ckpt_folder_path(model_dir, step);
    char *replaced = bel_strf("%s%s", folder, replaced_suffix);
    char *removed = bel_strf("%s%s", folder, removed_suffix);
    bel_status *status = remove_in_one(replaced, removed);
    if (status == NULL) status = remove_in_one(folder, removed);
    bel_free(removed);
    bel_free(replaced);
    bel_free(folder);
    return status;
}
