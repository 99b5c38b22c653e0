// The reader of XML answers: paths and texts, entities, and the bounds.
#include "base/alloc.h"
#include "base/str.h"
#include "store/xml.h"
#include "support/bel_test.h"

static void visit(void *context, const char *path, const char *text)
{
    bel_str_printf(context, "%s=%s|", path, text);
}

static void check(const char *text, const char *expected)
{
    bel_str got = {0};
    BEL_ASSERT_OK(bel_xml_read(text, strlen(text), visit, &got));
    assert_string_equal(got.text, expected);
    bel_str_deinit(&got);
}

static void check_bad(const char *text, const char *part)
{
    bel_str got = {0};
    BEL_ASSERT_FAILS(bel_xml_read(text, strlen(text), visit, &got), BEL_DATA_LOSS, part);
    bel_str_deinit(&got);
}

static void test_good(void **state)
{
    (void)state;
    check("<a/>", "a=|");
    check("\n<?xml version=\"1.0\"?>\n<!-- <b> -->\n<a><b x='>' y=\"</b>\">1</b><b>2</b> </a>\n",
          "a/b=1|a/b=2|a= |");
    check("<n:a xmlns:n=\"u\"><n:b>x</n:b></n:a>", "a/b=x|a=|");
    check("<a>&lt;&amp;&gt;&quot;&apos;&#65;&#x20ac;&#x1F600;</a>", "a=<&>\"'A€😀|");
    check("<a>1<![CDATA[<b>&amp;]]>2</a >", "a=1<b>&amp;2|");
    check("<a>1<b>2</b>3<c/></a>", "a/b=2|a/c=|a=13|");
}

static void test_bad(void **state)
{
    (void)state;
    check_bad("", "it ends early");
    check_bad("no xml", "text outside of elements");
    check_bad("<a>", "it ends early");
    check_bad("<a></b>", "the end of another element");
    check_bad("<a/><b/>", "a second root");
    check_bad("</a>", "the end of another element");
    check_bad("<a>&nbsp;</a>", "an unknown entity");
    check_bad("<a>&#xd800;</a>", "the number of a character");
    check_bad("<a>&#0;</a>", "the number of a character");
    check_bad("<a>&amp</a>", "expected an entity");
    check_bad("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "document types are refused");
    check_bad("<a b=\"c></a>", "an open quote");
    check_bad("<a><!-- </a>", "expected \"-->\"");
    check_bad("<>", "expected a name");
    check_bad("<a", "the end of a tag");
    bel_str deep = {0};
    for (int i = 0; i < 17; i++)
        bel_str_puts(&deep, "<a>");
    check_bad(deep.text, "too deep");
    bel_str_deinit(&deep);
    bel_str_puts(&deep, "<");
    for (int i = 0; i < 64; i++)
        bel_str_puts(&deep, "n");
    bel_str_puts(&deep, "/>");
    check_bad(deep.text, "1 to 63 bytes");
    bel_str_deinit(&deep);
    bel_str got = {0};
    BEL_ASSERT_FAILS(bel_xml_read("<a>\0</a>", 8, visit, &got), BEL_DATA_LOSS, "a zero byte");
    bel_str_deinit(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
