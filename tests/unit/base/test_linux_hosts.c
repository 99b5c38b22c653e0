// Hosts by name. The test uses only names and addresses with the same answer on every machine, with
// or without a network. label: threads
#include "base/linux_host.h"
#include "base/linux_hosts.h"

#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "support/bel_test.h"

enum { LONG_MS = 30000 };

static void test_many(void **state)
{
    (void)state;
    char own[256] = "";
    assert_int_equal(gethostname(own, sizeof own - 1), 0);
    bel_linux_host hosts[] = {{.name = "localhost"},    {.name = "127.9.8.7"}, {.name = "::1"},
                              {.name = "198.51.100.1"}, {.name = "bad name"},  {.name = own}};
    bel_linux_hosts_find(hosts, sizeof hosts / sizeof hosts[0], LONG_MS);
    for (int i = 0; i < 3; i++) {
        assert_true(hosts[i].is_here);
        assert_true(hosts[i].is_loopback);
        assert_string_equal(hosts[i].problem, "");
    }
    assert_string_equal(hosts[1].address, "127.9.8.7");
    assert_string_equal(hosts[3].address, "198.51.100.1"); // for documents, no host's
    assert_false(hosts[3].is_here);
    assert_false(hosts[3].is_loopback);
    assert_string_equal(hosts[4].address, "");
    assert_true(strlen(hosts[4].problem) > 0);
    assert_false(hosts[4].is_here);
    assert_true(hosts[5].is_here); // even if the name service disagrees
    bel_linux_hosts_find(NULL, 0, LONG_MS);
}

// More hosts than threads; each host has its answer.
static void test_very_many(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static char names[COUNT][32];
    static bel_linux_host hosts[COUNT];
    for (int i = 0; i < COUNT; i++) {
        bel_snprintf(names[i], sizeof names[i], "198.51.100.%d", i);
        hosts[i].name = names[i];
    }
    bel_linux_hosts_find(hosts, COUNT, LONG_MS);
    for (int i = 0; i < COUNT; i++)
        assert_string_equal(hosts[i].address, names[i]);
}

// Threads that still run after a timeout do no harm, whenever they end.
static void test_no_time(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        bel_linux_host hosts[] = {{.name = "localhost"}, {.name = "198.51.100.1"}};
        bel_linux_hosts_find(hosts, 2, 0);
        for (int j = 0; j < 2; j++)
            assert_true((hosts[j].address[0] == '\0') == (hosts[j].problem[0] != '\0'));
    }
}

static void test_is_known(void **state)
{
    (void)state;
    assert_true(bel_linux_host_is_known("unix:/tmp/x"));
    assert_true(bel_linux_host_is_known("127.0.0.1:7000"));
    assert_true(bel_linux_host_is_known("[::1]:7000"));
    assert_false(bel_linux_host_is_known("bad name:7000"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many), cmocka_unit_test(test_very_many),
        cmocka_unit_test(test_no_time), cmocka_unit_test(test_is_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
