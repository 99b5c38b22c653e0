// YAML: the content of a tree, and the position that each error names.
#include "support/bel_test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/yaml.h"

static bel_status *parse(const char *text, bel_yaml **out_yaml)
{
    return bel_yaml_parse(text, strlen(text), "t.yaml", out_yaml);
}

static void test_tree_with_places(void **state)
{
    (void)state;
    bel_yaml *yaml;
    BEL_ASSERT_OK(parse("# comment\n"
                        "name: ring\n"
                        "sizes: [512, 'two']\n"
                        "inner:\n"
                        "  a: 1\n"
                        "  b: ~\n",
                        &yaml));
    const bel_yaml_node *root = bel_yaml_root(yaml);
    assert_int_equal(root->kind, BEL_YAML_MAPPING);
    assert_int_equal(root->count, 3);
    assert_string_equal(root->keys[0]->text, "name");
    assert_string_equal(bel_yaml_member(root, "name")->text, "ring");
    const bel_yaml_node *sizes = bel_yaml_member(root, "sizes");
    assert_int_equal(sizes->kind, BEL_YAML_SEQUENCE);
    assert_int_equal(sizes->count, 2);
    assert_string_equal(sizes->values[1]->text, "two");
    assert_true(sizes->values[1]->quoted);
    assert_false(sizes->values[0]->quoted);
    const bel_yaml_node *b = bel_yaml_member(bel_yaml_member(root, "inner"), "b");
    assert_true(bel_yaml_is_null(b));
    assert_int_equal(b->line, 6);
    assert_int_equal(b->column, 6);
    assert_null(bel_yaml_member(root, "none"));
    assert_null(bel_yaml_member(b, "none"));
    BEL_ASSERT_FAILS(bel_yaml_error(yaml, b, "too %s", "low"), BEL_INVALID_ARGUMENT,
                     "t.yaml:6:6: too low");
    bel_yaml_destroy(yaml);
}

static void test_many_entries_keep_their_order(void **state)
{
    (void)state;
    bel_str text = {0};
    for (int i = 0; i < 100; i++)
        bel_str_printf(&text, "k%d: %d\n", i, i * i);
    bel_yaml *yaml;
    BEL_ASSERT_OK(parse(text.text, &yaml));
    const bel_yaml_node *root = bel_yaml_root(yaml);
    assert_int_equal(root->count, 100);
    for (int i = 0; i < 100; i++) {
        int64_t value = -1;
        const char *digits = root->values[i]->text;
        assert_true(bel_parse_i64(digits, strlen(digits), &value));
        assert_int_equal(value, i * i);
        assert_int_equal(root->values[i]->line, i + 1);
    }
    bel_yaml_destroy(yaml);
    bel_str_deinit(&text);
}

static void test_empty_documents(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n\n", "# nothing\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bel_yaml *yaml;
        BEL_ASSERT_OK(parse(texts[i], &yaml));
        assert_null(bel_yaml_root(yaml));
        bel_yaml_destroy(yaml);
    }
}

static void test_quoted_nothing_is_a_text(void **state)
{
    (void)state;
    bel_yaml *yaml;
    BEL_ASSERT_OK(parse("a: \"\"\nb:\nc: 'null'\n", &yaml));
    const bel_yaml_node *root = bel_yaml_root(yaml);
    assert_false(bel_yaml_is_null(bel_yaml_member(root, "a")));
    assert_true(bel_yaml_is_null(bel_yaml_member(root, "b")));
    assert_false(bel_yaml_is_null(bel_yaml_member(root, "c")));
    bel_yaml_destroy(yaml);
}

static void test_refusals_name_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *reason;
    } cases[] = {
        {"a: 1\nb: [1, 2\nc: 3\n", "t.yaml:3:", "not valid YAML"},
        {"a: 1\n\tb: 2\n", "t.yaml:2:1: ", "not valid YAML"},
        {"a: 'open\n", "t.yaml:2:1: ", "not valid YAML"},
        {"a: 1\nb: \xff\n", "t.yaml:2:4: ", "not valid YAML"},
        {"a: 1\nb: 2\na: 3\n", "t.yaml:3:1: ", "already exists in line 1"},
        {"a: &x 1\nb: *x\n", "t.yaml:1:4: ", "anchors"},
        {"a: 1\nb: *x\n", "t.yaml:2:4: ", "aliases"},
        {"a: !!int 1\n", "t.yaml:1:4: ", "tags"},
        {"? [1, 2]\n: 3\n", "t.yaml:1:3: ", "a key must be a plain text"},
        {"a: 1\n---\nb: 2\n", "t.yaml:2:1: ", "a second document"},
        {"a: \"x\\0y\"\n", "t.yaml:1:4: ", "zero byte"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_yaml *yaml;
        BEL_ASSERT_FAILS(parse(cases[i].text, &yaml), BEL_INVALID_ARGUMENT, cases[i].place);
        BEL_ASSERT_FAILS(parse(cases[i].text, &yaml), BEL_INVALID_ARGUMENT, cases[i].reason);
    }
}

static void test_limits(void **state)
{
    (void)state;
    bel_yaml *yaml;
    bel_str text = {0};
    for (int i = 0; i < 5000; i++)
        bel_str_puts(&text, "[");
    BEL_ASSERT_FAILS(parse(text.text, &yaml), BEL_INVALID_ARGUMENT, "t.yaml:1:33: nested");
    text.length = 0;
    for (int i = 0; i < BEL_YAML_MAX_NODES; i++)
        bel_str_puts(&text, "- 1\n");
    BEL_ASSERT_FAILS(parse(text.text, &yaml), BEL_INVALID_ARGUMENT, "too many values");
    const bel_yaml_limits more = {.nodes = BEL_YAML_MAX_NODES + 1};
    BEL_ASSERT_OK(bel_yaml_parse_within(text.text, text.length, "t.yaml", more, &yaml));
    bel_yaml_destroy(yaml);
    while (text.length <= BEL_YAML_MAX_BYTES)
        bel_str_puts(&text, "# a long comment that says nothing at all\n");
    BEL_ASSERT_FAILS(parse(text.text, &yaml), BEL_INVALID_ARGUMENT, "more than");
    const bel_yaml_limits larger = {.bytes = text.length, .nodes = BEL_YAML_MAX_NODES + 1};
    BEL_ASSERT_OK(bel_yaml_parse_within(text.text, text.length, "t.yaml", larger, &yaml));
    bel_yaml_destroy(yaml);
    bel_str_deinit(&text);
}

static void test_files(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    char *path = bel_test_file(folder, "good.yaml", "a: 1\n", 5);
    bel_yaml *yaml;
    BEL_ASSERT_OK(bel_yaml_read(path, &yaml));
    assert_string_equal(bel_yaml_source(yaml), path);
    bel_yaml_destroy(yaml);
    bel_free(path);
    path = bel_path_join(folder, "missing.yaml");
    BEL_ASSERT_FAILS(bel_yaml_read(path, &yaml), BEL_INVALID_ARGUMENT, path);
    BEL_ASSERT_FAILS(bel_yaml_read(folder, &yaml), BEL_INVALID_ARGUMENT, "no regular file");
    BEL_ASSERT_FAILS(bel_yaml_read("/dev/zero", &yaml), BEL_INVALID_ARGUMENT, "no regular file");
    bel_free(path);
    bel_test_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_with_places),
        cmocka_unit_test(test_many_entries_keep_their_order),
        cmocka_unit_test(test_empty_documents),
        cmocka_unit_test(test_quoted_nothing_is_a_text),
        cmocka_unit_test(test_refusals_name_their_place),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
