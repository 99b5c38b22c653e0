// Control messages: every field there and back, and bytes that are no message.
#include "base/alloc.h"
#include "base/rng.h"
#include "support/bel_test.h"
#include "wire/message.h"

static char name[] = "seed", value[] = "1", text[] = "why", host[] = "h", address[] = "a:1";
static char folder[] = "/m", variable_name[] = "dense/kernel";

static bel_message sample(void)
{
    static bel_message_setting settings[] = {{name, value}, {text, host}};
    static bel_message_point points[] = {{3, 0.5, 100}};
    static bel_message_variable variables[] = {{variable_name, 2, {.rank = 2, .dims = {4, 5}}}};
    static bel_message_table tables[] = {{variable_name, 16, 2, 0.05, 832}};
    static char *addresses[] = {address, host};
    static int32_t replicas[] = {2, 1};
    static uint32_t incarnations[] = {0, 7};
    static uint8_t data[] = {0, 255, 7};
    static double numbers[] = {0.25, -1};
    return (bel_message){
        .kind = BEL_MESSAGE_SETUP,
        .protocol = 1,
        .role = 2,
        .index = 3,
        .generation = 4,
        .incarnation = 5,
        .step = 6,
        .code = 7,
        .text = text,
        .host = host,
        .address = address,
        .folder = folder,
        .pid = 8,
        .addresses = addresses,
        .address_count = 2,
        .settings = settings,
        .setting_count = 2,
        .schedule = {1, 2, 3, 4, 5, 0.25, 6, 7, 8, 9, true, 10, 11},
        .variables = variables,
        .variable_count = 1,
        .tables = tables,
        .table_count = 1,
        .seed = UINT64_C(1) << 63,
        .optimizer = {.kind = BEL_OPTIMIZER_ADAM,
                      .learning_rate = 0.1,
                      .nesterov = true,
                      .epsilon = 1e-8,
                      .initial_accumulator = 0.3,
                      .learning_rate_power = -0.7,
                      .ftrl_l1 = 0.11,
                      .ftrl_l2 = 0.12,
                      .ftrl_l2_shrinkage = 0.13,
                      .rmsprop_decay = 0.4,
                      .rmsprop_momentum = 0.6,
                      .rmsprop_centered = true,
                      .lr_mults = {{"dense_0/*", 0.1}, {"*/bias", 0}},
                      .decay_mults = {{"*", 3}},
                      .moving_average_decay = 0.99,
                      .lars_trust = 0.31,
                      .moving_average_ramp = true,
                      .mean_by_contributors = true,
                      .schedule = {.kind = BEL_SCHEDULE_EXPONENTIAL,
                                   .decay_steps = 9,
                                   .boundaries = {[0] = 7, [14] = 8},
                                   .rates = {[0] = 0.7, [15] = 0.8},
                                   .alpha = 0.2}},
        .replicas = replicas,
        .incarnations = incarnations,
        .incarnation_count = 2,
        .replica_count = 2,
        .loss = 0.75,
        .examples = 64,
        .points = points,
        .point_count = 1,
        .save = true,
        .interrupted = true,
        .paused = true,
        .times = {1, 2, 3, 4, 5},
        .clock_ns = 91,
        .clock_lead_ns = -92,
        .numbers = numbers,
        .number_count = 2,
        .data = data,
        .data_bytes = 3,
    };
}

static bel_message there_and_back(const bel_message *message)
{
    size_t count;
    uint8_t *bytes = bel_message_write(message, &count);
    size_t length = bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16;
    assert_int_equal(length, count - 4);
    bel_message got;
    BEL_ASSERT_OK(bel_message_read(bytes + 4, length, &got));
    bel_free(bytes);
    return got;
}

static void test_scalars(void **state)
{
    (void)state;
    bel_message m = sample(), got = there_and_back(&m);
    assert_int_equal(got.kind, m.kind);
    assert_int_equal(got.protocol, m.protocol);
    assert_int_equal(got.role, m.role);
    assert_int_equal(got.index, m.index);
    assert_int_equal(got.generation, m.generation);
    assert_int_equal(got.incarnation, m.incarnation);
    assert_int_equal(got.step, m.step);
    assert_int_equal(got.code, m.code);
    assert_string_equal(got.text, m.text);
    assert_string_equal(got.host, m.host);
    assert_string_equal(got.address, m.address);
    assert_string_equal(got.folder, m.folder);
    assert_int_equal(got.pid, m.pid);
    assert_true(got.loss == m.loss);
    assert_int_equal(got.examples, m.examples);
    assert_int_equal(got.clock_ns, m.clock_ns);
    assert_int_equal(got.clock_lead_ns, m.clock_lead_ns);
    assert_int_equal(got.number_count, m.number_count);
    assert_memory_equal(got.numbers, m.numbers, m.number_count * sizeof *m.numbers);
    assert_true(got.save && !got.eval && got.interrupted && got.paused);
    bel_message_deinit(&got);
}

static void test_parts(void **state)
{
    (void)state;
    bel_message m = sample(), got = there_and_back(&m);
    assert_int_equal(got.address_count, 2);
    assert_string_equal(got.addresses[1], host);
    assert_int_equal(got.setting_count, 2);
    assert_string_equal(got.settings[0].name, name);
    assert_string_equal(got.settings[1].value, host);
    assert_memory_equal(&got.schedule, &m.schedule, sizeof m.schedule);
    assert_memory_equal(&got.times, &m.times, sizeof m.times);
    assert_memory_equal(got.points, m.points, sizeof *m.points);
    assert_int_equal(got.variable_count, 1);
    assert_string_equal(got.variables[0].name, variable_name);
    assert_true(bel_shape_equal(&got.variables[0].shape, &m.variables[0].shape));
    assert_int_equal(got.table_count, 1);
    assert_string_equal(got.tables[0].name, variable_name);
    assert_int_equal(got.tables[0].width, 16);
    assert_int_equal(got.tables[0].start, 2);
    assert_true(got.tables[0].start_value == 0.05);
    assert_int_equal(got.tables[0].ids, 832);
    assert_true(got.seed == m.seed);
    assert_int_equal(got.replica_count, 2);
    assert_int_equal(got.replicas[0], 2);
    assert_int_equal(got.incarnation_count, 2);
    assert_int_equal(got.incarnations[1], 7);
    assert_int_equal(got.optimizer.kind, BEL_OPTIMIZER_ADAM);
    assert_true(got.optimizer.learning_rate == 0.1 && got.optimizer.nesterov);
    assert_true(got.schedule.save_secs == 0.25 && got.schedule.takes_stale);
    assert_int_equal(got.schedule.max_lead, 10);
    assert_int_equal(got.schedule.block_end, 11);
    assert_int_equal(got.optimizer.schedule.decay_steps, 9);
    assert_true(got.optimizer.initial_accumulator == 0.3);
    assert_true(got.optimizer.rmsprop_decay == 0.4 && got.optimizer.rmsprop_momentum == 0.6);
    assert_true(got.optimizer.rmsprop_centered && got.optimizer.learning_rate_power == -0.7);
    assert_true(got.optimizer.ftrl_l1 == 0.11 && got.optimizer.ftrl_l2 == 0.12);
    assert_true(got.optimizer.ftrl_l2_shrinkage == 0.13 && got.optimizer.schedule.alpha == 0.2);
    const bel_schedule *schedule = &got.optimizer.schedule;
    assert_true(schedule->boundaries[0] == 7 && schedule->boundaries[14] == 8);
    assert_true(schedule->rates[0] == 0.7 && schedule->rates[15] == 0.8);
    assert_memory_equal(got.optimizer.lr_mults, m.optimizer.lr_mults, sizeof m.optimizer.lr_mults);
    assert_memory_equal(got.optimizer.decay_mults, m.optimizer.decay_mults,
                        sizeof m.optimizer.decay_mults);
    assert_true(got.optimizer.lars_trust == 0.31);
    assert_true(got.optimizer.moving_average_decay == 0.99 && got.optimizer.moving_average_ramp);
    assert_true(got.optimizer.mean_by_contributors);
    assert_int_equal(got.data_bytes, 3);
    assert_memory_equal(got.data, m.data, 3);
    bel_message_deinit(&got);
}

static void test_empty(void **state)
{
    (void)state;
    bel_message m = {.kind = BEL_MESSAGE_PING}, got = there_and_back(&m);
    assert_int_equal(got.kind, BEL_MESSAGE_PING);
    assert_string_equal(got.text, "");
    assert_int_equal(got.setting_count, 0);
    bel_message_deinit(&got);
}

// Every cut and many flips: an error or a message, never a crash.
static void test_damaged(void **state)
{
    (void)state;
    bel_message m = sample(), got;
    size_t count;
    uint8_t *bytes = bel_message_write(&m, &count);
    int refused = 0;
    for (size_t cut = 0; cut < count - 4; cut++) {
        bel_status *status = bel_message_read(bytes + 4, cut, &got);
        if (status == NULL) bel_message_deinit(&got);
        refused += status != NULL;
        bel_status_destroy(status);
    }
    assert_true(refused > 0);
    for (uint64_t i = 0; i < 5000; i++) {
        uint32_t words[4];
        bel_rng_block((bel_rng_key){{5, 6}}, 0, i, words);
        uint8_t *byte = &bytes[4 + words[0] % (count - 4)], was = *byte;
        *byte ^= (uint8_t)(1 + words[1] % 255);
        bel_status *status = bel_message_read(bytes + 4, count - 4, &got);
        if (status == NULL) bel_message_deinit(&got);
        bel_status_destroy(status);
        *byte = was;
    }
    m.kind = BEL_MESSAGE_KIND_COUNT;
    bel_free(bytes);
    bytes = bel_message_write(&m, &count);
    BEL_ASSERT_FAILS(bel_message_read(bytes + 4, count - 4, &got), BEL_INVALID_ARGUMENT, "unknown");
    bel_free(bytes);
}

// A message of an optimizer alone, with a list of its own written by hand. Field 26 of the control
// message holds the optimizer.
static bel_status *read_optimizer(uint8_t field, const uint8_t *item, uint8_t item_bytes, int count,
                                  bel_message *out_message)
{
    enum { MOST = 1024, HEADS = 4 };
    uint8_t bytes[MOST] = {0x08, BEL_MESSAGE_SETUP, 0xd2, 0x01};
    size_t inner = (size_t)count * ((size_t)item_bytes + 3);
    assert_true(inner < 1 << 14 && inner + 8 < MOST);
    size_t at = HEADS;
    bytes[at++] = (uint8_t)(0x80 | (inner & 0x7f));
    bytes[at++] = (uint8_t)(inner >> 7);
    for (int i = 0; i < count; i++) {
        int tag = field << 3 | 2; // with a length
        bytes[at++] = (uint8_t)(0x80 | (tag & 0x7f));
        bytes[at++] = (uint8_t)(tag >> 7);
        bytes[at++] = item_bytes;
        memcpy(bytes + at, item, item_bytes);
        at += item_bytes;
    }
    return bel_message_read(bytes, at, out_message);
}

static void test_lists_that_do_not_fit(void **state)
{
    (void)state;
    enum { BOUNDARIES = 26, RATES, LR_MULTS, DECAY_MULTS };
    static const uint8_t one[8] = {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, boundary[] = {5};
    uint8_t pattern[2 + BEL_PATTERN_BYTES] = {0x0a, BEL_PATTERN_BYTES - 1};
    memset(pattern + 2, 'a', BEL_PATTERN_BYTES);
    bel_message got;
    BEL_ASSERT_OK(read_optimizer(RATES, one, 8, BEL_SCHEDULE_MAX_PIECES, &got));
    assert_true(got.optimizer.schedule.rates[15] == 1);
    bel_message_deinit(&got);
    BEL_ASSERT_FAILS(read_optimizer(RATES, one, 8, BEL_SCHEDULE_MAX_PIECES + 1, &got),
                     BEL_INVALID_ARGUMENT, "a schedule of 17 rates and 0 boundaries");
    BEL_ASSERT_FAILS(read_optimizer(BOUNDARIES, boundary, 1, BEL_SCHEDULE_MAX_PIECES, &got),
                     BEL_INVALID_ARGUMENT, "a schedule of 0 rates and 16 boundaries");
    for (uint8_t field = LR_MULTS; field <= DECAY_MULTS; field++) {
        BEL_ASSERT_OK(read_optimizer(field, pattern, sizeof pattern - 1, 1, &got));
        bel_message_deinit(&got);
        BEL_ASSERT_FAILS(read_optimizer(field, (const uint8_t[]){0x0a, 1, 'a'}, 3,
                                        BEL_MAX_MULTIPLIERS + 1, &got),
                         BEL_INVALID_ARGUMENT, "17 multipliers");
        pattern[1]++;
        BEL_ASSERT_FAILS(read_optimizer(field, pattern, sizeof pattern, 1, &got),
                         BEL_INVALID_ARGUMENT, "pattern of 64 bytes");
        pattern[1]--;
        BEL_ASSERT_FAILS(read_optimizer(field, (const uint8_t[]){0x0a, 0}, 2, 1, &got),
                         BEL_INVALID_ARGUMENT, "pattern of 0 bytes");
    }
}

// Two bytes each: a message of megabytes must not take gigabytes. Field 14 holds the settings.
static void test_too_many_parts(void **state)
{
    (void)state;
    enum { PARTS = 4 << 20, FEW = 1000, SETTING = 14 << 3 | 2 };
    size_t size = 2 + 2 * (size_t)PARTS;
    uint8_t *bytes = bel_xcalloc(size, 1); // each a tag and a length of 0
    bytes[0] = 0x08;
    bytes[1] = BEL_MESSAGE_JOIN;
    for (size_t i = 2; i < size; i += 2)
        bytes[i] = SETTING;
    bel_message got;
    BEL_ASSERT_OK(bel_message_read(bytes, 2 + 2 * (size_t)FEW, &got));
    assert_int_equal(got.setting_count, FEW);
    bel_message_deinit(&got);
    BEL_ASSERT_FAILS(bel_message_read(bytes, size, &got), BEL_INVALID_ARGUMENT,
                     "8388610 bytes is too large once read");
    BEL_ASSERT_FAILS(bel_message_read(bytes, size, &got), BEL_INVALID_ARGUMENT, "83886084 bytes");
    bel_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_empty),   cmocka_unit_test(test_lists_that_do_not_fit),
        cmocka_unit_test(test_damaged), cmocka_unit_test(test_too_many_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
