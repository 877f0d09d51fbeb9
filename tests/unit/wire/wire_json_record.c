/* SPDX-License-Identifier: MIT */
/* Records as JSON: every kind of field in both directions, and refusals. */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "job/spec.h"
#include "unit_test.h"
#include "wire/json_record.h"
#include "wire/json_spec.h"
#include "wire/json_text.h"

struct part {
    uint32_t n;
};
static const struct record_field part_fields[] = { RECORD_FIELD(1, RECORD_U32, struct part, n, 0) };
static const struct record_type part_record = RECORD_TYPE(901, "part", struct part, part_fields);

struct whole {
    bool flag;
    uint32_t u32;
    int32_t i32;
    uint64_t u64;
    int64_t i64;
    uint64_t size;
    char *text;
    struct strings words, env;
    struct record_list parts;
};
static const struct record_field whole_fields[] = {
    RECORD_FIELD(1, RECORD_BOOL, struct whole, flag, 0),
    RECORD_FIELD(2, RECORD_U32, struct whole, u32, 0),
    RECORD_FIELD(3, RECORD_I32, struct whole, i32, 0),
    RECORD_FIELD(4, RECORD_U64, struct whole, u64, 0),
    RECORD_FIELD(5, RECORD_I64, struct whole, i64, 0),
    RECORD_FIELD(6, RECORD_SIZE, struct whole, size, 0),
    RECORD_FIELD(7, RECORD_STRING, struct whole, text, 10),
    RECORD_FIELD(8, RECORD_STRINGS, struct whole, words, 10),
    RECORD_FIELD(9, RECORD_ENV, struct whole, env, 20),
    RECORD_SUBLIST(10, struct whole, parts, 2, &part_record),
};
static const struct record_type whole_record = RECORD_TYPE(900, "whole", struct whole, whole_fields);

static int read_whole(const char *text, struct whole *whole, struct error *err)
{
    _cleanup_json_ json_t *value = NULL;
    memset(whole, 0, sizeof(*whole));
    int r = json_text_parse(text, strlen(text), &value, err);
    return r < 0 ? r : json_record_read(&whole_record, value, whole, err);
}

TEST(every_kind_goes_both_ways)
{
    static const char text[] =
        "{\"flag\":true,\"u32\":4294967295,\"i32\":-2147483648,\"u64\":9223372036854775807,"
        "\"i64\":-5,\"size\":1024,\"text\":\"a\\\"b\",\"words\":[\"x\",\"\"],\"env\":{\"A\":\"1=2\"},"
        "\"parts\":[{\"n\":1},{\"n\":2}]}";
    struct whole whole;
    struct error err = { 0 };
    assert_int_equal(read_whole(text, &whole, &err), 0);
    assert_string_equal(whole.env.items[0], "A=1=2");
    assert_int_equal(((struct part *)whole.parts.items)[1].n, 2);
    _cleanup_json_ json_t *back = json_record_write(&whole_record, &whole);
    _cleanup_free_ char *formatted = json_text_format(back);
    assert_string_equal(formatted, text);
    record_clear(&whole_record, &whole);
}

TEST(missing_and_null_keys_change_nothing)
{
    struct whole whole = { .u32 = 7, .text = xstrdup("kept") };
    struct error err = { 0 };
    _cleanup_json_ json_t *value = json_loads("{\"u32\":null,\"text\":null}", 0, NULL);
    assert_int_equal(json_record_read(&whole_record, value, &whole, &err), 0);
    assert_int_equal(whole.u32, 7);
    assert_string_equal(whole.text, "kept");
    record_clear(&whole_record, &whole);
}

TEST(a_size_may_be_a_text)
{
    struct whole whole;
    struct error err = { 0 };
    assert_int_equal(read_whole("{\"size\":\"8G\"}", &whole, &err), 0);
    assert_int_equal(whole.size, 8LL << 30);
    record_clear(&whole_record, &whole);
}

TEST(refusals_name_key_value_and_expectation)
{
    static const struct {
        const char *text;
        int code;
        const char *sentence;
    } cases[] = {
        { "{\"u32\":4294967296}", -ERANGE, "u32: 4294967296 is outside 0 to 4294967295" },
        { "{\"u32\":-1}", -ERANGE, "u32: -1 is outside 0 to 4294967295" },
        { "{\"i32\":2147483648}", -ERANGE, "i32: 2147483648 is outside -2147483648 to 2147483647" },
        { "{\"u64\":-1}", -ERANGE, "u64: -1 is outside 0 to 9223372036854775807" },
        { "{\"u32\":1.0}", -EINVAL, "u32 must be a whole number, not a number with a fraction" },
        { "{\"u32\":true}", -EINVAL, "u32 must be a whole number, not true" },
        { "{\"flag\":1}", -EINVAL, "flag must be true or false, not a whole number" },
        { "{\"text\":1}", -EINVAL, "text must be a string, not a whole number" },
        { "{\"text\":\"12345678901\"}", -E2BIG, "text has 11 bytes; at most 10" },
        { "{\"words\":\"x\"}", -EINVAL, "words must be an array of strings, not a string" },
        { "{\"words\":[\"x\",{}]}", -EINVAL, "words[1] must be a string, not an object" },
        { "{\"words\":[\"12345\",\"67890\"]}", -E2BIG, "words has 12 bytes; at most 10" },
        { "{\"env\":{\"A\":1}}", -EINVAL, "env.A must be a string, not a whole number" },
        { "{\"env\":{\"\":\"x\"}}", -EINVAL, "env: '' is not the name of a variable" },
        { "{\"env\":{\"ABCDEFGHIJ\":\"ABCDEFGHIJ\"}}", -E2BIG, "env has 22 bytes; at most 20" },
        { "{\"parts\":[{},{},{}]}", -E2BIG, "parts has 3 items; at most 2" },
        { "{\"parts\":[{},{\"m\":1}]}", -EINVAL, "parts[1]: a part has no key 'm'" },
        { "{\"parts\":[1]}", -EINVAL, "parts[0]: a part must be an object, not a whole number" },
        { "{\"txet\":\"a\"}", -EINVAL, "a whole has no key 'txet'" },
        { "{\"size\":\"many\"}", -EINVAL, "size: 'many' is not a size" },
        { "{\"size\":1.5}", -EINVAL,
            "size must be a number of bytes or a text such as \"8G\", not a number with a fraction" },
        { "[]", -EINVAL, "a whole must be an object, not an array" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct whole whole;
        struct error err = { 0 };
        assert_int_equal(read_whole(cases[i].text, &whole, &err), cases[i].code);
        assert_string_equal(err.message, cases[i].sentence);
        record_clear(&whole_record, &whole);
    }
}

TEST(an_unknown_key_brings_the_nearest_to_mind)
{
    struct whole whole;
    struct error err = { 0 };
    assert_int_equal(read_whole("{\"wrods\":[]}", &whole, &err), -EINVAL);
    assert_string_equal(err.hint, "did you mean 'words'?");
}

TEST(text_that_is_not_strict_json_is_refused)
{
    static const char *const texts[] = { "", " ", "{", "1", "\"a\"", "{} {}", "{\"a\":NaN}",
        "{\"a\":Infinity}", "{'a':1}", "{\"a\":1,}", "{\"a\":1,\"a\":2}", "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\u0000\"}", "{\"a\":\"\xc3\"}", "{\"a\":\"\x01\"}", "{\"a\":01}", "{\"a\":1e400}",
        "// {}" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_t *value = NULL;
        struct error err = { 0 };
        assert_int_equal(json_text_parse(texts[i], strlen(texts[i]), &value, &err), -EINVAL);
        assert_int_equal(strncmp(err.message, "not valid JSON at line ", 23), 0);
    }
    json_t *value = NULL;
    assert_int_equal(json_text_parse("{\"a\":\"\0\"}", 9, &value, NULL), -EINVAL);
}

TEST(depth_is_counted_outside_strings_only)
{
    static const char deep[] = "{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[\"}";
    _cleanup_json_ json_t *value = NULL;
    assert_int_equal(json_text_parse(deep, sizeof(deep) - 1, &value, NULL), 0);
    json_t *none = NULL;
    struct error err = { 0 };
    static const char real[] = "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]";
    assert_int_equal(json_text_parse(real, sizeof(real) - 1, &none, &err), -EINVAL);
    assert_string_equal(err.message, "the JSON is nested deeper than 16 levels");
}

TEST(bytes_that_are_no_utf8_are_still_shown)
{
    _cleanup_json_ json_t *value = json_text_string("a\xff"
                                                    "b");
    assert_string_equal(json_string_value(value), "a\\xffb");
}

TEST(a_spec_has_its_shorthands)
{
    struct job_spec spec;
    struct error err = { 0 };
    _cleanup_json_ json_t *value = json_loads("{\"command\":\"a b\",\"gpu_ids\":\"1,0\"}", 0, NULL);
    assert_int_equal(json_spec_read(value, &spec, &err), 0);
    assert_string_equal(spec.command.items[2], "a b");
    assert_int_equal(spec.ask.gpus, 2);
    assert_int_equal(spec.umask, 022);
    job_spec_clear(&spec);
    assert_true(json_is_string(json_object_get(value, "command"))); // the caller's is as it was
}

static int read_spec(const char *text, struct job_spec *spec, struct error *err)
{
    _cleanup_json_ json_t *value = json_loads(text, 0, NULL);
    assert_non_null(value);
    *err = (struct error){ 0 };
    return json_spec_read(value, spec, err);
}

TEST(what_a_job_asks_for_is_read_from_flat_keys)
{
    _cleanup_(job_spec_clear) struct job_spec spec;
    struct error err;
    static const char text[] =
        "{\"gpus\":\"2:h200\",\"gpu_mem\":\"8G\",\"priority\":-3,\"cpus\":2.5,\"memory\":\"16G\","
        "\"gpu_allow\":\"0-3\",\"time_limit\":\"4h\",\"begin\":\"2026-11-22T14:00:00.250+01:00\","
        "\"deadline\":\"2026-11-22T14:00:00Z\",\"after\":[\"41:any\",42],\"array\":\"0-9%2\","
        "\"hold\":true,\"preemptible\":true}";
    assert_int_equal(read_spec(text, &spec, &err), 0);
    assert_int_equal(spec.ask.gpus, 2);
    assert_string_equal(spec.ask.gpu_model, "h200");
    assert_int_equal(spec.ask.cpu_milli, 2500);
    assert_int_equal(spec.ask.memory, 16ULL << 30);
    assert_int_equal(spec.ask.time_limit_ms, 4 * 3600000);
    assert_int_equal(spec.ask.begin_ms, 1795352400250LL);
    assert_int_equal(spec.ask.deadline_ms - spec.ask.begin_ms, 3600000 - 250);
    assert_string_equal(spec.ask.after, "41:any,42");
    assert_string_equal(spec.ask.array, "0-9%2");
    assert_true(spec.hold && spec.ask.preemptible);
}

TEST(a_part_of_a_gpu_is_a_number_below_one)
{
    static const struct {
        const char *text;
        uint32_t gpus, share;
    } rows[] = {
        { "{\"gpus\":0.5}", 1, 500 },
        { "{\"gpus\":\"0.25:a100|h100\"}", 1, 250 },
        { "{\"gpus\":0}", 0, 0 },
        { "{\"gpus\":2.0}", 2, 0 },
        { "{\"gpus\":\"3\"}", 3, 0 },
        { "{\"gpus\":1,\"gpu_share\":125}", 1, 125 },
        { "{\"nodes\":2,\"gpus_per_node\":4}", 8, 0 },
        { "{\"nodes\":2}", 2, 0 },
        { "{\"gpus_per_node\":4}", 4, 0 },
        { "{\"gpu_ids\":\"n1:0,1;n2:0\"}", 3, 0 },
        { "{}", 1, 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct job_spec spec;
        struct error err;
        if (read_spec(rows[i].text, &spec, &err) < 0)
            fail_msg("%s: %s", rows[i].text, err.message);
        assert_int_equal(spec.ask.gpus, rows[i].gpus);
        assert_int_equal(spec.ask.gpu_share, rows[i].share);
        job_spec_clear(&spec);
    }
}

TEST(shorthands_that_make_no_sense_are_refused)
{
    static const struct {
        const char *text, *word;
    } rows[] = {
        { "{\"gpus\":1.5}", "1.5 is neither" },
        { "{\"gpus\":0.9999}", "neither" },
        { "{\"gpus\":-1}", "outside" },
        { "{\"gpus\":1e300}", "outside" },
        { "{\"gpus\":\"x\"}", "'x'" },
        { "{\"gpus\":\"2:\"}", "'2:'" },
        { "{\"gpus\":\":h200\"}", "':h200'" },
        { "{\"gpus\":\"1.2.3\"}", "'1.2.3'" },
        { "{\"gpus\":true}", "gpus must be" },
        { "{\"gpus\":0.5,\"gpu_share\":500}", "both" },
        { "{\"gpus\":\"1:a\",\"gpu_model\":\"b\"}", "both" },
        { "{\"after\":[41,true]}", "after[1]" },
        { "{\"cpus\":\"2\"}", "cpus must be a number" },
        { "{\"cpus\":-1}", "cpus" },
        { "{\"cpus\":0.0001}", "less than" },
        { "{\"time_limit\":-1}", "time_limit" },
        { "{\"time_limit\":\"soon\"}", "'soon'" },
        { "{\"time_limit\":true}", "time_limit must be" },
        { "{\"begin\":7}", "begin must be a string" },
        { "{\"begin\":\"18:00\"}", "'18:00' is not a time" },
        { "{\"begin\":\"2026-11-22T14:00:00\"}", "is not a time" },
        { "{\"begin\":\"2026-11-22T14:00:00+25:00\"}", "is not a time" },
        { "{\"begin\":\"2026-11-22T14:00:00.Z\"}", "is not a time" },
        { "{\"begin\":\"1969-11-22T14:00:00Z\"}", "is not a time" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct job_spec spec;
        struct error err;
        if (read_spec(rows[i].text, &spec, &err) == 0 || strstr(err.message, rows[i].word) == NULL)
            fail_msg("%s: %s", rows[i].text, err.message);
        job_spec_clear(&spec);
    }
}

TEST(an_edit_changes_what_it_names_and_null_takes_back)
{
    _cleanup_(job_ask_clear) struct job_ask ask = {
        .gpus = 1, .gpu_share = 500, .after = xstrdup("41"), .priority = 3, .deadline_ms = 7
    };
    struct error err = { 0 };
    _cleanup_json_ json_t *value = json_loads("{\"gpus\":2,\"after\":null,\"deadline\":null}", 0, NULL);
    assert_int_equal(json_ask_read(value, &ask, &err), 0);
    assert_int_equal(ask.gpus, 2);
    assert_int_equal(ask.gpu_share, 0);
    assert_int_equal(ask.priority, 3);
    assert_int_equal(ask.deadline_ms, 0);
    assert_null(ask.after);
}

TEST(a_reset_number_of_gpus_follows_the_rest_of_the_request)
{
    static const struct {
        struct job_ask ask;
        const char *ids, *text;
        uint32_t gpus;
    } rows[] = {
        { { .gpus = 4 }, NULL, "{\"gpus\":null}", 1 },
        { { .gpus = 0 }, NULL, "{\"gpus\":null,\"priority\":null}", 1 },
        { { .gpus = 0 }, NULL, "{\"priority\":1}", 0 },
        { { .gpus = 4, .nodes = 2, .gpus_per_node = 2 }, NULL, "{\"gpus\":null}", 4 },
        { { .gpus = 4, .nodes = 2, .gpus_per_node = 2 }, NULL,
            "{\"gpus\":null,\"nodes\":null,\"gpus_per_node\":null}", 1 },
        { { .gpus = 3 }, "box:1,3,5", "{\"gpus\":null}", 3 },
        { { .gpus = 3 }, "box:1,3,5", "{\"gpus\":null,\"gpu_ids\":null}", 1 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct job_ask ask = rows[i].ask;
        struct error err = { 0 };
        ask.gpu_ids = rows[i].ids != NULL ? xstrdup(rows[i].ids) : NULL;
        _cleanup_json_ json_t *value = json_loads(rows[i].text, 0, NULL);
        assert_int_equal(json_ask_read(value, &ask, &err), 0);
        assert_int_equal(ask.gpus, rows[i].gpus);
        job_ask_clear(&ask);
    }
}

TEST(the_schema_tells_every_field)
{
    _cleanup_json_ json_t *schema = json_record_schema(&whole_record);
    const json_t *properties = json_object_get(schema, "properties");
    for (size_t i = 0; i < whole_record.n_fields; i++)
        assert_non_null(json_object_get(properties, whole_record.fields[i].name));
}
