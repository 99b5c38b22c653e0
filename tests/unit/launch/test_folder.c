// Lock of a model folder across processes and renames, and the count of starts in the folder.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_lock.h"
#include "base/linux_shared.h"
#include "base/str.h"
#include "base/thread.h"
#include "launch/folder/folder_lock.h"
#include "launch/folder/sockets.h"
#include "launch/folder/start_count.h"
#include "support/bel_test.h"

static int asked;

static bool stop_at_third(void)
{
    return ++asked >= 3;
}

static bool never(void)
{
    return false;
}

// The master keeps the lock descriptor that it received: the folder stays locked until both
// processes are done.
static void test_given(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    int supervisors = -1, masters = -1, another = -1;
    BEL_ASSERT_OK(bel_folder_lock(folder, &supervisors));
    int given = dup(supervisors);
    BEL_ASSERT_OK(bel_folder_lock_of_master(folder, given, 0, never, &masters));
    assert_int_equal(masters, given);
    assert_int_not_equal(fcntl(masters, F_GETFD) & FD_CLOEXEC, 0);
    bel_linux_unlock(supervisors);
    BEL_ASSERT_FAILS(bel_folder_lock(folder, &another), BEL_FAILED_PRECONDITION, "another run");
    bel_linux_unlock(masters);
    BEL_ASSERT_OK(bel_folder_lock(folder, &another));
    bel_linux_unlock(another);
    bel_free(folder);
}

// Given another descriptor or none, the master takes the lock itself and waits for it.
static void test_own(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    int mine = -1, another = -1, stray = open("/dev/null", O_RDONLY);
    BEL_ASSERT_OK(bel_folder_lock_of_master(folder, stray, 0, never, &mine));
    assert_int_not_equal(mine, stray);
    BEL_ASSERT_FAILS(bel_folder_lock_of_master(folder, 0, 0, never, &another),
                     BEL_FAILED_PRECONDITION, "another run");
    asked = 0;
    BEL_ASSERT_FAILS(bel_folder_lock_of_master(folder, 0, 1000, stop_at_third, &another),
                     BEL_FAILED_PRECONDITION, "another run");
    assert_int_equal(asked, 3);
    bel_linux_unlock(mine);
    BEL_ASSERT_OK(bel_folder_lock_of_master(folder, 0, 0, never, &another));
    bel_linux_unlock(another);
    close(stray);
    bel_free(folder);
}

static void test_renamed(void **state)
{
    (void)state;
    char *base = bel_test_folder(), *folder = bel_path_join(base, "run");
    char *moved = bel_path_join(base, "moved");
    int lock = -1;
    bool told = false;
    BEL_ASSERT_OK(bel_folder_lock_check(folder, -1, &told)); // a file system without locks
    BEL_ASSERT_OK(bel_folder_lock(folder, &lock));
    BEL_ASSERT_OK(bel_folder_lock_check(folder, lock, &told));
    assert_int_equal(rename(folder, moved), 0);
    assert_int_equal(symlink(folder, folder), 0); // a loop: ELOOP, not ENOENT
    assert_false(told);
    BEL_ASSERT_OK(bel_folder_lock_check(folder, lock, &told));
    assert_true(told);
    assert_int_equal(unlink(folder), 0);
    BEL_ASSERT_FAILS(bel_folder_lock_check(folder, lock, &told), BEL_ABORTED, "renamed or removed");
    char *file = bel_path_join(folder, BEL_LOCK_FILE); // another file under the same name
    BEL_ASSERT_OK(bel_dir_create(folder));
    BEL_ASSERT_OK(bel_file_write_atomic(file, "", 0));
    BEL_ASSERT_FAILS(bel_folder_lock_check(folder, lock, &told), BEL_ABORTED, "renamed or removed");
    bel_free(file);
    bel_linux_unlock(lock);
    bel_free(moved);
    bel_free(folder);
    bel_free(base);
}

// The next run removes files that a killed process was writing. Other processes' files stay.
static void test_leftovers(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child); // no process has its pid now
    char *folder = bel_test_folder();
    long long gone = (long long)child, here = (long long)getpid();
    char *names[] = {
        bel_strf("job.yaml.tmp-%lld-0", gone),  bel_strf("best.json.tmp-%lld-12", gone),
        bel_strf("job.yaml.tmp-%lld-0", here),  bel_strf("job.yaml.tmp-%lld-mine", gone),
        bel_strf("model.bin.tmp-%lld-0", gone), bel_strf("job.yaml.tmp-"),
    };
    enum { NAMES = sizeof names / sizeof *names, REMOVED = 2 };
    for (int i = 0; i < NAMES; i++)
        bel_free(bel_test_file(folder, names[i], "", 0));
    int lock;
    BEL_ASSERT_OK(bel_folder_lock(folder, &lock));
    for (int i = 0; i < NAMES; i++) {
        char *path = bel_path_join(folder, names[i]);
        assert_int_equal(bel_file_exists(path), i >= REMOVED);
        bel_free(path);
        bel_free(names[i]);
    }
    bel_linux_unlock(lock);
    bel_free(folder);
}

// Each role counts separately, and always upwards.
static void test_starts(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    uint32_t count;
    for (uint32_t i = 1; i <= 3; i++) {
        BEL_ASSERT_OK(bel_start_count(folder, BEL_ROLE_WORKER, 1, &count));
        assert_int_equal(count, i);
    }
    BEL_ASSERT_OK(bel_start_count(folder, BEL_ROLE_WORKER, 2, &count));
    assert_int_equal(count, 1);
    BEL_ASSERT_OK(bel_start_count(folder, BEL_ROLE_PS, 1, &count));
    assert_int_equal(count, 1);
    bel_free(folder);
}

enum { STARTERS = 4, STARTS = 50 };

typedef struct starter {
    pthread_t thread;
    const char *folder;
    uint32_t counts[STARTS];
} starter;

static void *start_often(void *argument)
{
    starter *s = argument;
    for (int i = 0; i < STARTS; i++) // a failed call leaves 0, which is never assigned
        bel_status_ignore(bel_start_count(s->folder, BEL_ROLE_WORKER, 0, &s->counts[i]));
    return NULL;
}

// All of many simultaneous starts get different numbers.
static void test_start_count_at_one_moment(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    starter starters[STARTERS];
    bool given[STARTERS * STARTS + 1] = {true};
    for (int i = 0; i < STARTERS; i++) {
        starters[i] = (starter){.folder = folder};
        BEL_ASSERT_OK(bel_thread_start(&starters[i].thread, start_often, &starters[i]));
    }
    for (int i = 0; i < STARTERS; i++)
        assert_int_equal(pthread_join(starters[i].thread, NULL), 0);
    for (int i = 0; i < STARTERS * STARTS; i++) {
        uint32_t count = starters[i / STARTS].counts[i % STARTS];
        assert_true(count <= STARTERS * STARTS && !given[count]);
        given[count] = true;
    }
    bel_free(folder);
}

// Old socket folders of killed jobs are removed, unless a process holds their lock.
static void test_old_sockets(void **state)
{
    (void)state;
    static const char *const names[] = {"belfry-sockets-dead", "belfry-sockets-live",
                                        "belfry-sockets-new", "somebody-else"};
    static const bool stays[] = {false, true, true, true};
    char *base = bel_test_folder(), *folders[4];
    int locks[4];
    for (int i = 0; i < 4; i++) {
        folders[i] = bel_path_join(base, names[i]);
        BEL_ASSERT_OK(bel_dir_create(folders[i]));
        BEL_ASSERT_OK(bel_linux_lock_folder(folders[i], &locks[i]));
        bel_free(bel_test_file(folders[i], "master", "", 0));
        if (i != 1) bel_linux_unlock(locks[i]);
        const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
        if (i != 2) assert_int_equal(utimensat(AT_FDCWD, folders[i], old, 0), 0);
    }
    bel_old_sockets_remove(base);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(bel_file_exists(folders[i]), stays[i]);
        bel_free(folders[i]);
    }
    bel_linux_unlock(locks[1]);
    bel_free(base);
}

static int listening_socket(const char *folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char *path = bel_path_join(folder, "worker-0");
    assert_true(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    bel_free(path);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    return listener;
}

// Processes may outlive the supervisor that held the lock; an open socket shows it.
static void test_open_sockets(void **state)
{
    (void)state;
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char *base = bel_test_folder(), *folder = bel_path_join(base, "belfry-sockets-orphan");
    BEL_ASSERT_OK(bel_dir_create(folder));
    int listener = listening_socket(folder);
    assert_int_equal(utimensat(AT_FDCWD, folder, old, 0), 0);
    bel_old_sockets_remove(base);
    assert_true(bel_file_exists(folder));
    close(listener);
    bel_old_sockets_remove(base);
    assert_false(bel_file_exists(folder));
    bel_free(folder);
    bel_free(base);
}

// A job with XDG_RUNTIME_DIR also removes the remains of jobs without it in /tmp.
static void test_old_sockets_elsewhere(void **state)
{
    (void)state;
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char left[] = "/tmp/belfry-sockets-XXXXXX", *base = bel_test_folder(), *folder;
    const char *was = getenv("XDG_RUNTIME_DIR");
    char *before = was != NULL ? bel_xstrdup(was) : NULL;
    assert_non_null(mkdtemp(left));
    assert_int_equal(utimensat(AT_FDCWD, left, old, 0), 0);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", base, 1), 0);
    int lock;
    BEL_ASSERT_OK(bel_sockets_create(&folder, &lock));
    assert_int_equal(strncmp(folder, base, strlen(base)), 0);
    assert_false(bel_file_exists(left));
    if (before != NULL) {
        assert_int_equal(setenv("XDG_RUNTIME_DIR", before, 1), 0);
    } else {
        assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
    }
    bel_linux_unlock(lock);
    bel_free(before);
    bel_free(folder);
    bel_free(base);
}

// Enters and leaves the folder, as members that come and go. *failed: it was not there.
static void *come_and_go(void *failed)
{
    enum { TIMES = 200 };
    for (int i = 0; i < TIMES; i++) {
        char *folder = NULL;
        int lock = -1;
        bel_status *status = bel_sockets_meet("a:3 job", &folder, &lock);
        bool there = status == NULL && bel_file_exists(folder);
        bel_status_ignore(status); // counted
        if (!there) atomic_fetch_add((atomic_int *)failed, 1);
        if (folder != NULL) bel_sockets_part(folder, lock);
        bel_free(folder);
    }
    return NULL;
}

// The last one that leaves takes no folder from one that enters.
static void test_meeting_at_once(void **state)
{
    (void)state;
    enum { THREADS = 3 };
    char *base = bel_test_folder();
    char *before =
        getenv("XDG_RUNTIME_DIR") != NULL ? bel_xstrdup(getenv("XDG_RUNTIME_DIR")) : NULL;
    pthread_t threads[THREADS];
    atomic_int failed = 0;
    setenv("XDG_RUNTIME_DIR", base, 1);
    for (int t = 0; t < THREADS; t++)
        BEL_ASSERT_OK(bel_thread_start(&threads[t], come_and_go, &failed));
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    assert_int_equal(failed, 0);
    if (before != NULL) setenv("XDG_RUNTIME_DIR", before, 1);
    if (before == NULL) unsetenv("XDG_RUNTIME_DIR");
    bel_free(before);
    bel_test_remove_folder(base);
}

// Processes of one job meet in one folder, which the last one removes. A socket there may have no
// listener.
static void test_meeting(void **state)
{
    (void)state;
    char *base = bel_test_folder(), *one = NULL, *two = NULL, *other = NULL;
    char *before =
        getenv("XDG_RUNTIME_DIR") != NULL ? bel_xstrdup(getenv("XDG_RUNTIME_DIR")) : NULL;
    int locks[3] = {-1, -1, -1}, exclusive = -1;
    setenv("XDG_RUNTIME_DIR", base, 1);
    BEL_ASSERT_OK(bel_sockets_meet("a:1 job", &one, &locks[0]));
    BEL_ASSERT_OK(bel_sockets_meet("a:1 job", &two, &locks[1]));
    BEL_ASSERT_OK(bel_sockets_meet("a:2 job", &other, &locks[2]));
    assert_string_equal(one, two);
    char *place = bel_linux_shared_place(one), *same = bel_linux_shared_place(two);
    char *another = bel_linux_shared_place(other), *nowhere = bel_linux_shared_place("/nowhere");
    assert_non_null(place);
    assert_string_equal(place, same);
    assert_string_not_equal(place, another);
    assert_null(nowhere);
    BEL_ASSERT_FAILS(bel_linux_lock_folder(one, &exclusive), BEL_FAILED_PRECONDITION, "locked");

    char *path = bel_path_join(one, "worker-0");
    int listener = listening_socket(one);
    BEL_ASSERT_OK(bel_sockets_check(one));
    close(listener); // it refuses
    BEL_ASSERT_OK(bel_sockets_check(one));
    bel_sockets_part(one, locks[0]);
    assert_true(bel_file_exists(one)); // with a socket
    assert_int_equal(unlink(path), 0);
    bel_sockets_part(two, locks[1]);
    assert_false(bel_file_exists(one));
    bel_sockets_part(other, locks[2]);
    if (before != NULL) setenv("XDG_RUNTIME_DIR", before, 1);
    if (before == NULL) unsetenv("XDG_RUNTIME_DIR");
    char *const texts[] = {one, two, other, place, same, another, path, before};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        bel_free(texts[i]);
    bel_test_remove_folder(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_given),
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_renamed),
        cmocka_unit_test(test_starts),
        cmocka_unit_test(test_start_count_at_one_moment),
        cmocka_unit_test(test_old_sockets),
        cmocka_unit_test(test_open_sockets),
        cmocka_unit_test(test_old_sockets_elsewhere),
        cmocka_unit_test(test_meeting),
        cmocka_unit_test(test_meeting_at_once),
        cmocka_unit_test(test_leftovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
