// Two numbers in a file that is replaced as a whole. A reader that acts once on each request
// distinguishes requests by inode and modification time, not by the numbers, so the same ones can
// be requested again. The mark is taken before the content is read: a request that is replaced in
// between is acted on twice rather than never. An unreadable file counts as no request.
#include "launch/folder/scale.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

bel_status *bel_scale_write(const char *model_dir, bel_scale wish)
{
    char *path = bel_path_join(model_dir, BEL_SCALE_FILE);
    bel_str text = {0};
    bel_str_printf(&text, "{\"workers\": %d, \"parameter_servers\": %d}\n", wish.workers,
                   wish.servers);
    bel_status *status = bel_file_write_atomic(path, text.text, text.length);
    bel_str_deinit(&text);
    bel_free(path);
    return status;
}

// 0: no number from 1 on.
static int scale_number(const bel_json *json, const char *name)
{
    int64_t number = 0;
    (void)bel_json_i64(bel_json_root(json), name, &number);
    return number > 0 && number <= INT32_MAX ? (int)number : 0;
}

bel_scale bel_scale_read(const char *model_dir)
{
    char *path = bel_path_join(model_dir, BEL_SCALE_FILE), *text;
    size_t size;
    bel_json *json = NULL;
    bel_scale wish = {0};
    bool there = bel_file_exists(path);
    bel_status *status = there ? bel_file_read(path, &text, &size) : NULL;
    if (there && status == NULL) {
        status = bel_json_parse(text, size, path, &json);
        if (status == NULL) {
            wish.workers = scale_number(json, "workers");
            wish.servers = scale_number(json, "parameter_servers");
        }
        bel_free(text);
    }
    bel_status_ignore(status); // then there is no request
    bel_json_destroy(json);
    bel_free(path);
    return wish;
}

bel_scale bel_scale_read_new(const char *model_dir, bel_scale_mark *mark)
{
    char *path = bel_path_join(model_dir, BEL_SCALE_FILE);
    struct stat about;
    bool there = stat(path, &about) == 0;
    bel_free(path);
    if (!there) return (bel_scale){0};
    const bel_scale_mark found = {.file = (int64_t)about.st_ino,
                                  .written_ns = (int64_t)about.st_mtim.tv_sec * 1000000000 +
                                                about.st_mtim.tv_nsec};
    if (found.file == mark->file && found.written_ns == mark->written_ns) return (bel_scale){0};
    bel_scale wish = bel_scale_read(model_dir);
    if (wish.workers > 0 || wish.servers > 0) *mark = found; // an unreadable request is tried again
    return wish;
}

void bel_scale_remove(const char *model_dir)
{
    char *path = bel_path_join(model_dir, BEL_SCALE_FILE);
    (void)remove(path); // usually absent
    bel_free(path);
}
