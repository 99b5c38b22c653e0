// Command for tests of src/store: calls one function of store.h, and prints its result.
//
// usage: store_tool [--patience SECS | --changes N] COMMAND ARGUMENTS
//   --changes N                     permits N requests that change the store
//   check URL                       bel_store_check_url
//   stat URL                        prints "SIZE TAG"
//   read URL OFFSET SIZE [TAG]      writes the bytes to stdout
//   cat URL [MOST]                  writes the object to stdout
//   list PREFIX [deep]              prints "NAME SIZE TAG" for each entry
//   write URL FILE [absent | TAG]   prints the new tag
//   upload FILE URL, download URL FILE, copy FROM TO, remove URL, abort PREFIX
//   copies PREFIX                   makes the copies of all objects at once, and prints their bytes
//   open URL                        makes the copy of this host (copy.h), and prints its size
//   first URL COUNT [joined]        reads COUNT shuffled contexts of 1024 tokens, and prints the
//                                   seconds and a hash of them; joined: of windows of two records
//                                   over the tokens twice
//   partial URL [check]             reads the end of a partial copy, prints "open", waits for a
//                                   line, prints a hash of all bytes; check: waits 10 s for a wrong
//                                   checksum
//   twice URL FILE                  asks the store, prints "asked", and asks again when FILE exists
//   leave URL FILE                  exits when FILE exists, while another thread asks the store
//   clock URL                       asks the store, and prints its clock's offset in seconds
//   many URL SIZE                   reads ranges of SIZE at once, and writes the object to stdout
//   each PREFIX                     reads all objects at once, prints their number and bytes
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "belfry/tokens.h"
#include "input/batch/batch.h"
#include "input/batch/input.h"
#include "store/copy.h"
#include "store/partial.h"
#include "store/store.h"

static double patience = 120;
static atomic_long changes_left;

static bel_status *permit(void *context)
{
    (void)context;
    if (atomic_fetch_sub(&changes_left, 1) > 0) return NULL;
    return BEL_ERR(BEL_ABORTED, "no further change is permitted");
}

static void print_info(const bel_store_info *info)
{
    printf("%llu %s\n", (unsigned long long)info->size_bytes, info->tag);
}

static bel_status *run_read(char **words, int count)
{
    size_t size = (size_t)strtoull(words[2], NULL, 10), got;
    char *data = bel_xmalloc(size + 1);
    bel_status *status = bel_store_read(words[0], count > 3 ? words[3] : NULL,
                                        strtoull(words[1], NULL, 10), size, data, &got, NULL);
    if (status == NULL) fwrite(data, 1, got, stdout);
    bel_free(data);
    return status;
}

static bel_status *run_cat(char **words, int count)
{
    char *data;
    size_t size;
    BEL_TRY(bel_store_read_all(words[0], count > 1 ? strtoull(words[1], NULL, 10) : 1ull << 40,
                               &data, &size));
    fwrite(data, 1, size, stdout);
    bel_free(data);
    return NULL;
}

static bel_status *run_list(char **words, int count)
{
    bel_store_entry *entries;
    size_t entry_count;
    BEL_TRY(bel_store_list(words[0], count > 1, &entries, &entry_count));
    for (size_t i = 0; i < entry_count; i++) {
        printf("%s ", entries[i].name);
        print_info(&entries[i].info);
    }
    bel_store_entries_free(entries, entry_count);
    return NULL;
}

static bel_status *run_write(char **words, int count)
{
    char *data;
    size_t size;
    bel_store_info info;
    bel_store_condition condition = {0};
    if (count > 2 && strcmp(words[2], "absent") == 0)
        condition.absent = true;
    else if (count > 2)
        condition.tag = words[2];
    BEL_TRY(bel_file_read(words[1], &data, &size));
    bel_status *status =
        bel_store_write(words[0], data, size, count > 2 ? &condition : NULL, &info);
    bel_free(data);
    if (status == NULL) puts(info.tag);
    return status;
}

static bel_status *run_clock(char **words)
{
    bel_store_info info;
    BEL_TRY(bel_store_stat(words[0], &info));
    printf("%.0f\n", bel_store_clock_offset_secs(words[0]));
    return NULL;
}

// --- Many reads at once

typedef struct task {
    const char *url;
    uint64_t offset;
    size_t size, got;
    char *data; // NULL: the entire object is read
    bel_status *status;
} task;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static size_t left;

static void run_task(void *context)
{
    task *t = context;
    bel_store_set_patience(patience);
    if (t->data != NULL) {
        t->status = bel_store_read(t->url, NULL, t->offset, t->size, t->data, &t->got, NULL);
    } else {
        t->status = bel_store_read_all(t->url, 1ull << 30, &t->data, &t->got);
    }
    pthread_mutex_lock(&mutex);
    left--;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&mutex);
}

static bel_status *run_tasks(task *tasks, size_t count)
{
    bel_status *status = NULL;
    left = count;
    for (size_t i = 0; i < count; i++)
        bel_store_begin(run_task, &tasks[i]);
    pthread_mutex_lock(&mutex);
    while (left > 0)
        pthread_cond_wait(&ended, &mutex);
    pthread_mutex_unlock(&mutex);
    for (size_t i = 0; i < count; i++) {
        if (status == NULL)
            status = tasks[i].status;
        else
            bel_status_destroy(tasks[i].status);
    }
    return status;
}

static bel_status *run_many(char **words)
{
    size_t size = (size_t)strtoull(words[1], NULL, 10);
    bel_store_info info;
    BEL_TRY(bel_store_stat(words[0], &info));
    size_t count = (size_t)((info.size_bytes + size - 1) / size);
    task *tasks = bel_xcalloc(count + 1, sizeof *tasks);
    char *data = bel_xmalloc((size_t)info.size_bytes + size);
    for (size_t i = 0; i < count; i++)
        tasks[i] =
            (task){.url = words[0], .offset = i * size, .size = size, .data = data + i * size};
    bel_status *status = run_tasks(tasks, count);
    if (status == NULL) fwrite(data, 1, (size_t)info.size_bytes, stdout);
    bel_free(data);
    bel_free(tasks);
    return status;
}

static bel_status *run_each(char **words)
{
    bel_store_entry *entries;
    size_t count, bytes = 0;
    BEL_TRY(bel_store_list(words[0], true, &entries, &count));
    task *tasks = bel_xcalloc(count + 1, sizeof *tasks);
    for (size_t i = 0; i < count; i++)
        tasks[i].url = bel_strf("%s%s", words[0], entries[i].name);
    bel_status *status = run_tasks(tasks, count);
    for (size_t i = 0; i < count; i++) {
        bytes += tasks[i].got;
        bel_free(tasks[i].data);
        bel_free((char *)(uintptr_t)tasks[i].url);
    }
    if (status == NULL) printf("%zu %zu\n", count, bytes);
    bel_free(tasks);
    bel_store_entries_free(entries, count);
    return status;
}

static bel_status *run_open(char **words)
{
    bel_host_file copy;
    BEL_TRY(bel_store_copy_open(words[0], &copy, NULL));
    printf("%zu\n", copy.size);
    bel_host_file_close(&copy);
    return NULL;
}

// Two datasets in one, whose records are made of others.
static bel_dataset *join(const bel_token_options *options)
{
    bel_dataset *twice[] = {bel_dataset_from_tokens(options), bel_dataset_from_tokens(options)};
    bel_dataset_shuffle(twice[0], 0, 3);
    bel_dataset *joined = bel_dataset_concatenate(twice, 2);
    bel_dataset_enumerate(joined, "number", 0);
    bel_dataset_window(joined, 2, 2, 1, true);
    return joined;
}

static bel_status *run_first(char **words, int count)
{
    const char *paths[] = {words[0]};
    bel_token_options options = {.size = sizeof options,
                                 .paths = paths,
                                 .path_count = 1,
                                 .format = BEL_TOKENS_IDS,
                                 .context = 1024};
    bel_dataset *dataset = count > 2 ? join(&options) : bel_dataset_from_tokens(&options);
    bel_dataset_shuffle(dataset, 0, 7);
    bel_dataset_batch(dataset, strtoll(words[1], NULL, 10));
    bel_input *input = NULL;
    int64_t before = bel_clock_ns();
    bel_status *status = bel_input_open(dataset, NULL, &input);
    bel_dataset_destroy(dataset);
    BEL_TRY(status);
    bel_batch *batch = bel_batch_create(input);
    status = bel_input_read(input, 0, batch);
    double seconds = (double)(bel_clock_ns() - before) / 1e9;
    if (status == NULL)
        printf("%.4f %016llx\n", seconds,
               (unsigned long long)bel_hash64(batch->fields[0].data,
                                              bel_tensor_bytes(&batch->fields[0])));
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    return status;
}

static bel_status *run_partial(char **words, int count)
{
    enum { LOOKS = 200, LOOK_MS = 50 };
    char line[16];
    bel_partial *partial;
    bel_store_info info;
    BEL_TRY(bel_partial_open(words[0], &partial, &info));
    if (partial == NULL) return BEL_ERR(BEL_UNIMPLEMENTED, "%s: no partial copy", words[0]);
    bel_status *status = bel_partial_need(partial, info.size_bytes - 1, 1);
    puts("open");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) line[0] = '\0';
    if (status == NULL) status = bel_partial_need(partial, 0, info.size_bytes);
    for (int i = 0; i < LOOKS && count > 1 && status == NULL; i++) {
        status = bel_partial_check(partial);
        (void)poll(NULL, 0, LOOK_MS);
    }
    if (status == NULL)
        printf("%016llx\n",
               (unsigned long long)bel_hash64(bel_partial_data(partial), (size_t)info.size_bytes));
    bel_partial_close(partial);
    return status;
}

static void wait_for_file(const char *path)
{
    enum { LOOKS = 3000, LOOK_MS = 50 };
    for (int i = 0; i < LOOKS && !bel_file_exists(path); i++)
        (void)poll(NULL, 0, LOOK_MS);
}

static bel_status *run_leave(char **words)
{
    bel_store_copy_begin(words[0]);
    wait_for_file(words[1]);
    return NULL;
}

static bel_status *run_twice(char **words)
{
    bel_store_info info;
    BEL_TRY(bel_store_stat(words[0], &info));
    puts("asked");
    fflush(stdout);
    wait_for_file(words[1]);
    return bel_store_stat(words[0], &info);
}

static bel_status *run_copies(char **words)
{
    bel_store_entry *entries;
    size_t count, bytes = 0;
    bel_status *status = NULL;
    BEL_TRY(bel_store_list(words[0], true, &entries, &count));
    for (int opens = 0; opens < 2; opens++) {
        for (size_t i = 0; i < count && status == NULL; i++) {
            bel_host_file copy;
            char *url = bel_strf("%s%s", words[0], entries[i].name);
            if (opens == 0) bel_store_copy_begin(url);
            if (opens == 1) status = bel_store_copy_open_known(url, &copy, NULL);
            if (opens == 1 && status == NULL) {
                bytes += copy.size;
                bel_host_file_close(&copy);
            }
            bel_free(url);
        }
    }
    if (status == NULL) printf("%zu\n", bytes);
    bel_store_entries_free(entries, count);
    return status;
}

static bel_status *run(const char *command, char **words, int count)
{
    bel_store_info info;
    if (strcmp(command, "check") == 0 && count == 1) return bel_store_check_url(words[0]);
    if (strcmp(command, "stat") == 0 && count == 1) {
        BEL_TRY(bel_store_stat(words[0], &info));
        print_info(&info);
        return NULL;
    }
    if (strcmp(command, "read") == 0 && count >= 3) return run_read(words, count);
    if (strcmp(command, "cat") == 0 && count >= 1) return run_cat(words, count);
    if (strcmp(command, "list") == 0 && count >= 1) return run_list(words, count);
    if (strcmp(command, "write") == 0 && count >= 2) return run_write(words, count);
    if (strcmp(command, "upload") == 0 && count == 2)
        return bel_store_upload(words[0], words[1], NULL);
    if (strcmp(command, "download") == 0 && count == 2)
        return bel_store_download(words[0], words[1], NULL);
    if (strcmp(command, "copy") == 0 && count == 2) return bel_store_copy(words[0], words[1]);
    if (strcmp(command, "remove") == 0 && count == 1) return bel_store_remove(words[0]);
    if (strcmp(command, "abort") == 0 && count == 1) return bel_store_abort_uploads(words[0]);
    if (strcmp(command, "clock") == 0 && count == 1) return run_clock(words);
    if (strcmp(command, "many") == 0 && count == 2) return run_many(words);
    if (strcmp(command, "each") == 0 && count == 1) return run_each(words);
    if (strcmp(command, "open") == 0 && count == 1) return run_open(words);
    if (strcmp(command, "first") == 0 && count >= 2) return run_first(words, count);
    if (strcmp(command, "partial") == 0 && count >= 1) return run_partial(words, count);
    if (strcmp(command, "twice") == 0 && count == 2) return run_twice(words);
    if (strcmp(command, "leave") == 0 && count == 2) return run_leave(words);
    if (strcmp(command, "copies") == 0 && count == 1) return run_copies(words);
    return BEL_ERR(BEL_INVALID_ARGUMENT, "store_tool: unknown command, or too few words");
}

int main(int argument_count, char **arguments)
{
    int at = 1;
    if (argument_count > 2 && strcmp(arguments[1], "--patience") == 0) {
        patience = strtod(arguments[2], NULL);
        at = 3;
    }
    if (argument_count > 2 && strcmp(arguments[1], "--changes") == 0) {
        atomic_store(&changes_left, strtol(arguments[2], NULL, 10));
        (void)bel_store_set_permission((bel_store_permission){.ask = permit});
        at = 3;
    }
    bel_store_set_patience(patience);
    if (at >= argument_count) {
        fprintf(stderr, "usage: store_tool [--patience SECS | --changes N] COMMAND ARGUMENTS\n");
        return 2;
    }
    return bel_status_report(run(arguments[at], arguments + at + 1, argument_count - at - 1));
}
