// Lanes between two processes: frames go both ways while both sides sleep in between. A killed peer
// cuts the lane at once, after its last frame. label: threads
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "support/bel_test.h"
#include "transport/shm/shm_lane.h"

enum { CAPACITY = 8, EXCHANGES = 2000, REGION_BYTES = 1 << 20, LAST = 7 };

static char *folder, *path;
static pid_t child;
static _Atomic(bel_lane *) expected;

static bel_status *find(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    (void)context;
    if (hello->kind != 1 || hello->index != 2) return BEL_ERR(BEL_NOT_FOUND, "another lane");
    *out_lane = expected;
    return NULL;
}

static int64_t soon(void)
{
    return bel_clock_ns() + 30 * (int64_t)1000000000;
}

static bool receive_soon(bel_lane *lane, bel_doorbell *bell, bel_frame *out_frame)
{
    int64_t deadline = soon();
    bool got = bel_lane_receive(lane, out_frame);
    while (!got && !bel_lane_is_cut(lane) && bel_doorbell_wait(bell, deadline))
        got = bel_lane_receive(lane, out_frame);
    return got;
}

static void wait_for_rings(bel_doorbell *bell, uint64_t count)
{
    int64_t deadline = soon();
    while (bel_doorbell_count(bell) < count && bel_clock_ns() < deadline)
        (void)bel_doorbell_wait(bell, bel_clock_ns() + 1000000);
    assert_true(bel_doorbell_count(bell) >= count);
}

// The other process: answers each frame with the sum of all payloads received. After the last it
// sends one more frame and stays.
static bool be_the_peer(void)
{
    bel_shm_hub *hub = NULL;
    bel_shm_region *region = NULL;
    bel_status *status = bel_shm_hub_create(&(bel_shm_hub_config){.secret = "between us"}, &hub);
    if (status == NULL) status = bel_shm_region_create("peer", REGION_BYTES, &region);
    if (status != NULL) return false;
    bel_doorbell *bell = bel_doorbell_create();
    bel_shm_lane_config config = {
        .capacity = CAPACITY, .bell = bell, .region = region, .peer_bytes = REGION_BYTES};
    const bel_lane_hello hello = {.kind = 1, .index = 2};
    bel_lane *lane = bel_shm_lane_connect(hub, path, &hello, &config);
    float *sums = bel_shm_region_memory(region);
    for (int i = 0; i < EXCHANGES; i++) {
        bel_frame frame;
        if (!receive_soon(lane, bell, &frame)) return false;
        const float *values = frame.payload;
        for (size_t k = 0; k < 1024; k++)
            sums[k] += values[k];
        frame.payload = sums;
        status = bel_lane_send(lane, &frame);
        if (status != NULL) return false;
    }
    status = bel_lane_send(lane, &(bel_frame){.kind = 2, .fields = {LAST}});
    return status == NULL;
}

static void test_exchange_and_kill(void **state)
{
    (void)state;
    bel_shm_hub *hub = NULL;
    bel_shm_region *region = NULL;
    BEL_ASSERT_OK(bel_shm_region_create("test", REGION_BYTES, &region));
    bel_doorbell *bell = bel_doorbell_create();
    bel_shm_hub_config hub_config = {.listen_path = path, .secret = "between us", .find = find};
    BEL_ASSERT_OK(bel_shm_hub_create(&hub_config, &hub));
    bel_shm_lane_config config = {
        .capacity = CAPACITY, .bell = bell, .region = region, .peer_bytes = REGION_BYTES};
    bel_lane *lane = bel_shm_lane_create(hub, &config);
    expected = lane;
    float *values = bel_shm_region_memory(region);
    bel_frame got = {0};
    for (int i = 0; i < EXCHANGES; i++) {
        for (size_t k = 0; k < 1024; k++)
            values[k] = (float)(i % 3);
        bel_frame frame = {.kind = 1,
                           .fields = {(uint8_t)i},
                           .payload = values,
                           .payload_bytes = 1024 * sizeof *values};
        BEL_ASSERT_OK(bel_lane_send(lane, &frame));
        assert_true(receive_soon(lane, bell, &got));
        assert_int_equal(got.fields[0], (uint8_t)i);
    }
    int total = EXCHANGES / 3 * 3 + (EXCHANGES % 3 == 2 ? 1 : 0); // 0 + 1 + 2, and the rest
    assert_true(((const float *)got.payload)[1023] == (float)total);
    wait_for_rings(bell, EXCHANGES + 1); // the last frame is there, not yet taken

    int64_t start_ns = bel_clock_ns();
    assert_int_equal(kill(child, SIGKILL), 0);
    wait_for_rings(bell, EXCHANGES + 2);                              // the cut rings
    assert_true(bel_clock_ns() - start_ns < 5 * (int64_t)1000000000); // not a timeout
    assert_false(bel_lane_is_cut(lane));
    assert_true(bel_lane_receive(lane, &got));
    assert_int_equal(got.fields[0], LAST);
    assert_true(bel_lane_is_cut(lane));
    BEL_ASSERT_FAILS(bel_lane_send(lane, &got), BEL_UNAVAILABLE, "closed");
    const float *view = bel_shm_region_memory(bel_shm_lane_peer(lane));
    assert_true(view[0] == (float)total); // the peer's memory stays until this end closes
    bel_lane_close(lane);
    bel_shm_hub_destroy(hub);
    bel_doorbell_destroy(bell);
    bel_shm_region_destroy(region);
}

int main(void)
{
    folder = bel_test_folder();
    path = bel_strf("%s/hub", folder);
    child = fork(); // before any thread exists
    if (child == 0) {
        bool good = be_the_peer();
        while (good)
            pause();
        _exit(1);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exchange_and_kill)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    bel_test_remove_folder(folder);
    bel_free(path);
    return failed;
}
