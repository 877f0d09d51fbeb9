/* SPDX-License-Identifier: MIT */
/* Numbers, sizes, durations and id lists as people type them: tables of valid and invalid texts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "unit_test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

TEST(whole_numbers_within_the_bounds_are_read)
{
    const struct {
        const char *text;
        int64_t value;
    } cases[] = { { "0", 0 }, { "-5", -5 }, { "10", 10 }, { "007", 7 } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t value = 99;
        assert_int_equal(parse_integer(cases[i].text, "--gpus", -5, 10, &value, NULL), 0);
        assert_int_equal(value, cases[i].value);
    }
}

TEST(text_that_is_no_whole_number_is_refused)
{
    static const char *const cases[] = { "", " 1", "1 ", "1x", "x", "-", "--1", "+1", "1.0", "0x1" };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t value = 99;
        struct error err = { 0 };
        assert_int_equal(parse_integer(cases[i], "--gpus", -5, 10, &value, &err), -EINVAL);
        assert_int_equal(value, 99);
        assert_non_null(strstr(err.message, "--gpus"));
    }
}

TEST(numbers_outside_the_bounds_are_refused_with_the_bounds)
{
    static const char *const cases[] = { "-6", "11", "99999999999999999999", "-99999999999999999999" };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t value = 99;
        struct error err = { 0 };
        assert_int_equal(parse_integer(cases[i], "--gpus", -5, 10, &value, &err), -ERANGE);
        assert_int_equal(value, 99);
        assert_non_null(strstr(err.message, "-5 to 10"));
    }
}

TEST(sizes_are_read_with_and_without_a_unit)
{
    const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = { { "8G", 8ULL << 30 }, { "8GiB", 8ULL << 30 }, { "8gb", 8ULL << 30 },
        { "512M", 512ULL << 20 }, { "1.5G", 3ULL << 29 }, { "1024K", 1ULL << 20 }, { "100B", 100 },
        { "8000", 8000ULL << 20 }, { "1T", 1ULL << 40 }, { "1024T", 1ULL << 50 } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t bytes = 1;
        assert_int_equal(parse_size(cases[i].text, "--gpu-mem", &bytes, NULL), 0);
        assert_int_equal(bytes, cases[i].bytes);
    }
}

TEST(text_that_is_no_size_is_refused_with_a_hint)
{
    static const char *const cases[] = { "", "G", "-1G", "8X", "8GG", "8 G", "1e3", "0x10", "inf", "nan",
        "1.2.3G" };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t bytes = 99;
        struct error err = { 0 };
        assert_int_equal(parse_size(cases[i], "--gpu-mem", &bytes, &err), -EINVAL);
        assert_int_equal(bytes, 99);
        assert_true(err.hint[0] != '\0');
    }
}

TEST(sizes_beyond_any_machine_are_refused)
{
    static const char *const cases[] = { "0", "0B", "1025T", "99999999999999999999G", "0.1B" };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t bytes = 99;
        assert_int_equal(parse_size(cases[i], "--gpu-mem", &bytes, NULL), -ERANGE);
        assert_int_equal(bytes, 99);
    }
}

TEST(durations_are_read_in_every_form)
{
    const struct {
        const char *text;
        int64_t ms;
    } cases[] = { { "10", 10000 }, { "10s", 10000 }, { "250ms", 250 }, { "90m", 5400000 }, { "4h", 14400000 },
        { "2d", 172800000 }, { "1.5h", 5400000 }, { "1:30", 90000 }, { "1:30:00", 5400000 },
        { "2-00:00:00", 172800000 }, { "1-12:30", 86400000 + 750000 }, { "0", 0 }, { "1h30m", 5400000 },
        { "1d00h", 86400000 }, { "2m05s", 125000 }, { "1d2h3m4s", 93784000 } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t ms = -7;
        assert_int_equal(parse_duration(cases[i].text, "--timeout", &ms, NULL), 0);
        assert_int_equal(ms, cases[i].ms);
    }
}

TEST(text_that_is_no_duration_is_refused_with_a_hint)
{
    static const char *const cases[] = { "", "h", "-1", "1x", "1:", ":30", "1:2:3:4", "1h30", "1m2h", "1h2h",
        "1.5h30m", "h30m", "1:30:00:", "1-0:0:0:", "2-", "2-5", "1-2-3:00", "1:x", "5-1:00x",
        "9999999999:00:00" };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t ms = -7;
        struct error err = { 0 };
        assert_int_equal(parse_duration(cases[i], "--timeout", &ms, &err), -EINVAL);
        assert_int_equal(ms, -7);
        assert_true(err.hint[0] != '\0');
    }
}

TEST(a_duration_that_is_too_long_is_called_so)
{
    struct error err = { 0 };
    int64_t ms = -7;
    assert_int_equal(parse_duration("36500d", "-t", &ms, &err), 0);
    assert_int_equal(parse_duration("36501d", "-t", &ms, &err), -ERANGE);
    assert_string_equal(err.message, "-t: 36501d is longer than 36500d");
    assert_int_equal(parse_duration("99999999999999999999", "-t", &ms, &err), -ERANGE);
    double number = 0;
    assert_int_equal(parse_number("-1", "-x", 1e6, &number, &err), -EINVAL);
    assert_string_equal(err.message, "-x: '-1' is not a number from 0 to 1000000");
}

TEST(id_lists_keep_the_order_typed)
{
    _cleanup_free_ uint32_t *ids = NULL;
    size_t count = 0;
    assert_int_equal(parse_id_list("7,0-2,5", "--gpu-ids", 7, &ids, &count, NULL), 0);
    const uint32_t expected[] = { 7, 0, 1, 2, 5 };
    assert_int_equal(count, COUNT(expected));
    assert_memory_equal(ids, expected, sizeof(expected));
}

TEST(bad_id_lists_are_refused)
{
    const struct {
        const char *text;
        int code;
    } cases[] = { { "", -EINVAL }, { ",", -EINVAL }, { "0,", -EINVAL }, { "0,,1", -EINVAL }, { "a", -EINVAL },
        { "-1", -EINVAL }, { "3-1", -EINVAL }, { "0-", -EINVAL }, { "0 1", -EINVAL }, { "1,1", -EINVAL },
        { "0-2,1", -EINVAL }, { "8", -ERANGE }, { "0-4000000000", -ERANGE },
        { "99999999999999999999999", -ERANGE } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t *ids = NULL;
        size_t count = 99;
        struct error err = { 0 };
        assert_int_equal(parse_id_list(cases[i].text, "--gpu-ids", 7, &ids, &count, &err), cases[i].code);
        assert_null(ids);
        assert_int_equal(count, 99);
        assert_non_null(strstr(err.message, "--gpu-ids"));
    }
}

TEST(a_wrong_id_is_named_as_it_was_typed)
{
    uint32_t *ids = NULL;
    size_t count = 0;
    struct error err = { 0 };
    (void)parse_id_list("0,3,3", "--gpu-ids", 7, &ids, &count, &err);
    assert_string_equal(err.message, "--gpu-ids: id 3 is listed twice");
    (void)parse_id_list("0-99999999999999999999999,1", "--gpu-ids", 7, &ids, &count, &err);
    assert_string_equal(err.message, "--gpu-ids: id 99999999999999999999999 is above 7");
}

TEST(sizes_are_shown_with_a_fitting_unit)
{
    const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = { { 0, "0 B" }, { 1023, "1023 B" }, { 1024, "1 KiB" }, { 1536, "1.5 KiB" },
        { 24ULL << 30, "24 GiB" }, { 23407741337ULL, "21.8 GiB" }, { 150ULL << 20, "150 MiB" } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[32];
        format_size(cases[i].bytes, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

TEST(durations_are_shown_with_two_units)
{
    const struct {
        int64_t ms;
        const char *text;
    } cases[] = { { -5, "0ms" }, { 12, "12ms" }, { 5999, "5s" }, { 64000, "1m04s" }, { 11520000, "3h12m" },
        { 187200000, "2d04h" } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[32];
        format_duration(cases[i].ms, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}
