/* SPDX-License-Identifier: MIT */
/* Host lists in Slurm's short form, both ways. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/hostlist.h"
#include "unit_test.h"

static char *joined(const struct strings *names)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    for (size_t i = 0; i < names->count; i++)
        buffer_printf(&out, "%s%s", i > 0 ? " " : "", names->items[i]);
    return out.length > 0 ? buffer_take(&out) : xstrdup("");
}

TEST(a_short_list_has_the_names_it_stands_for)
{
    static const char *const rows[][2] = {
        { "box", "box" },
        { "gpu[1-3,7]", "gpu1 gpu2 gpu3 gpu7" },
        { "gpu[08-10],login", "gpu08 gpu09 gpu10 login" },
        { "r[1-2]n[0-1]", "r1n0 r1n1 r2n0 r2n1" },
        { "a,b c", "a b c" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_strings_ struct strings names = { 0 };
        assert_int_equal(hostlist_expand(rows[i][0], &names, NULL), 0);
        _cleanup_free_ char *text = joined(&names);
        assert_string_equal(text, rows[i][1]);
    }
}

TEST(names_become_a_short_list)
{
    static const char *const rows[][2] = {
        { "box", "box" },
        { "gpu1,gpu2,gpu3,gpu7", "gpu[1-3,7]" },
        { "gpu3,gpu1,login,gpu2", "gpu[1-3],login" },
        { "gpu08,gpu09,gpu10", "gpu[08-10]" },
        { "gpu1,gpu01", "gpu1,gpu01" },
        { "n10,n9,n08", "n[08,10],n9" },
        { "n9,n10,n08", "n[9-10],n08" },
        { "box,box", "box" },
        { "gpu1,gpu1", "gpu1" },
        { "a123456789012,a123456789013", "a123[456789012-456789013]" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_strings_ struct strings names = { 0 };
        assert_int_equal(hostlist_expand(rows[i][0], &names, NULL), 0);
        _cleanup_free_ char *text = hostlist_compress(&names);
        assert_string_equal(text, rows[i][1]);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, and each once. */
static char *set_of(struct strings *names)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    qsort(names->items, names->count, sizeof(names->items[0]), by_name);
    for (size_t i = 0; i < names->count; i++)
        if (i == 0 || strcmp(names->items[i - 1], names->items[i]) != 0)
            buffer_printf(&out, "%s ", names->items[i]);
    return buffer_take(&out);
}

TEST(a_short_list_has_the_names_it_was_made_of)
{
    static const char *const prefixes[] = { "n", "r1n", "gpu-0", "n1x" };
    uint32_t random = 1;
    for (int turn = 0; turn < 20000; turn++) {
        _cleanup_strings_ struct strings names = { 0 }, back = { 0 };
        for (uint32_t count = 1 + turn % 7U; count > 0; count--) {
            random = random * 1664525U + 1013904223U;
            const char *prefix = prefixes[(random >> 8) % (turn % 3 == 0 ? 4 : 1)];
            strings_take(&names, xasprintf("%s%0*u", prefix, (int)((random >> 16) % 4),
                                     (random >> 20) % (turn % 2 ? 13 : 120)));
        }
        _cleanup_free_ char *text = hostlist_compress(&names);
        assert_int_equal(hostlist_expand(text, &back, NULL), 0);
        _cleanup_free_ char *before = set_of(&names), *after = set_of(&back);
        if (strcmp(before, after) != 0)
            fail_msg("%s became %s", before, text);
    }
}

TEST(what_is_no_list_is_refused)
{
    static const char *const rows[] = { "gpu[1-", "gpu1]", "gpu[]", "gpu[a]", "gpu[3-1]", "gpu[1-2-3]" };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_strings_ struct strings names = { 0 };
        struct error err = { 0 };
        assert_true(hostlist_expand(rows[i], &names, &err) < 0);
        assert_true(err.message[0] != '\0');
    }
    _cleanup_strings_ struct strings names = { 0 };
    assert_int_equal(hostlist_expand("n[0-99999]", &names, NULL), -E2BIG);
}
