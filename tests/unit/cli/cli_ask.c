/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/options/ask.h"
#include "unit_test.h"

/* The value of a key as JSON text. */
static void check(const char *key, const char *text, const char *expected)
{
    struct error err = { 0 };
    _cleanup_json_ json_t *request = json_object();
    if (ask_set(request, NULL, key, "-x", text, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    _cleanup_free_ char *value =
        json_dumps(json_object_get(request, key), JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    assert_string_equal(value, expected);
}

static void refuse(const char *key, const char *text, const char *message)
{
    struct error err = { 0 };
    _cleanup_json_ json_t *request = json_object();
    assert_true(ask_set(request, NULL, key, "-x", text, &err) < 0);
    assert_string_equal(err.message, message);
    assert_int_equal(json_object_size(request), 0);
}

TEST(gpus_are_a_number_a_part_or_of_a_model)
{
    check("gpus", "2", "2");
    check("gpus", "0", "0");
    check("gpus", "0.5", "0.5");
    check("gpus", "0.125", "0.125");
    check("gpus", "1.000", "1");
    check("gpus", "2:h200", "\"2:h200\"");
    refuse("gpus", "1.5", "-x: '1.5' is neither a number of GPUs nor a part of a GPU");
    refuse("gpus", "0.0001", "-x: '0.0001' is neither a number of GPUs nor a part of a GPU");
    refuse("gpus", "-1", "-x: '-1' is neither a number of GPUs nor a part of a GPU");
    refuse("gpus", "", "-x: '' is neither a number of GPUs nor a part of a GPU");
    refuse("gpus", "h200", "-x: 'h200' is not a number of GPUs");
    refuse("gpus", "2:", "-x: '2:' has no model after the colon");
    refuse("gpus", "0:h200", "-x: '0:h200' names a model, but no GPU");
    refuse("gpus", "0,1", "-x: '0,1' is a list, but a number of GPUs is required");
    refuse("gpus", "1025", "-x: 1025 is outside 0 to 1024");
    refuse("gpus", "99999999999999999999", "-x: 99999999999999999999 is outside 0 to 1024");
}

TEST(sizes_are_bytes_and_spans_seconds)
{
    check("gpu_mem", "8G", "8589934592");
    check("memory", "512", "536870912");
    check("time_limit", "90m", "5400");
    check("time_limit", "2-00:00:00", "172800");
    check("time_limit", "30", "30");
    check("time_limit", "250ms", "\"250ms\"");
    check("cpus", "2.5", "2.5");
    check("cpus", "8", "8");
    refuse("time_limit", "0", "-x: a limit of 0 leaves no time to run");
    refuse("time_limit", "4 hours", "-x: '4 hours' is not a duration");
    refuse("grace", "0", "-x: 0 is too short; the shortest time is 1ms");
    refuse("time_limit", "99999999999d", "-x: 99999999999d is longer than 36500d");
    refuse("gpus", "9999999999", "-x: 9999999999 is outside 0 to 1024");
    refuse("gpus", "99999999999999999999:h200", "-x: 99999999999999999999:h200 is outside 0 to 1024");
    refuse("cpus", "0", "-x: 0 is outside 0.001 to 65536");
    refuse("cpus", "9999999999", "-x: 9999999999 is outside 0.001 to 65536");
    refuse("cpus", "2.5x", "-x: '2.5x' is not a number of CPUs, such as 4 or 2.5");
}

TEST(times_are_sent_as_rfc_3339)
{
    check("begin", "2026-11-22T14:00:00+02:00", "\"2026-11-22T12:00:00.000Z\"");
    refuse("deadline", "soon", "-x: 'soon' is not a time");
}

TEST(what_is_waited_for_is_checked)
{
    check("after", "41", "\"41:ok\"");
    check("after", "41:any,42:fail", "\"41:any,42:fail\"");
    refuse("after", "41:okk", "-x: 'okk' is not a condition");
    refuse("after", "41-43", "-x: '41-43' is more than one job");
    refuse("after", "", "-x: an empty word does not name a job");
}

TEST(lists_of_gpus_and_elements_are_checked)
{
    struct error err = { 0 };
    _cleanup_json_ json_t *request = json_object();
    check("gpu_ids", "0,2-3", "\"0,2-3\"");
    check("gpu_ids", "gpu1:0,1;gpu2:0", "\"gpu1:0,1;gpu2:0\"");
    check("gpu_allow", "0-3,5", "\"0-3,5\"");
    check("array", "0-99:2%8", "\"0-99:2%8\"");
    assert_true(ask_set(request, NULL, "array", "--array", "9-0", &err) < 0);
    assert_memory_equal(err.message, "--array: the range", 18);
    assert_true(ask_set(request, NULL, "gpu_ids", "-G", "n:0;1", &err) < 0);
    assert_memory_equal(err.message, "-G: '1'", 7);
}

TEST(a_flag_is_yes_or_no)
{
    check("preemptible", "yes", "true");
    check("preemptible", "no", "false");
    refuse("preemptible", "maybe", "-x: 'maybe' is not yes or no");
}

TEST(keys_have_shorter_names)
{
    struct ask_key key;
    assert_true(ask_find("time", &key));
    assert_string_equal(key.key, "time_limit");
    assert_true(ask_find("ram", &key));
    assert_string_equal(key.key, "memory");
    assert_false(ask_find("gpuz", &key));
    assert_false(ask_find("adopted_boot", &key)); // nothing that one edits
}

static void check_settled(const char *text, const char *message)
{
    struct error err = { 0 };
    _cleanup_json_ json_t *request = json_loads(text, 0, NULL);
    assert_non_null(request);
    int r = ask_resolve(request, &err);
    if (message == NULL)
        assert_int_equal(r, 0);
    else
        assert_string_equal(err.message, message);
}

TEST(contradictions_are_one_sentence)
{
    check_settled("{\"gpus\":0,\"cpus\":4}", NULL);
    check_settled("{\"gpus\":0,\"nodes\":4}", NULL);
    check_settled("{\"gpus\":0.5}", NULL);
    check_settled("{\"gpus\":4,\"nodes\":2,\"gpus_per_node\":2}", NULL);
    check_settled("{\"gpus\":0,\"gpu_allow\":\"0\"}", "--gpu-allow has no effect with -g 0");
    check_settled("{\"gpu_ids\":\"0\",\"gpu_allow\":\"0\"}", "--gpu-allow cannot be combined with -G");
    check_settled("{\"gpus\":3,\"nodes\":2,\"gpus_per_node\":2}",
        "-g 3 contradicts -N 2 with --gpus-per-node 2, which are 4 GPUs");
    check_settled("{\"gpus\":\"3:h200\",\"nodes\":4}", "-N 4 needs a GPU on each node, but -g is 3");
    check_settled("{\"gpus\":3,\"gpus_per_node\":2}", "-g 3 cannot be divided into 2 GPUs a node");
    check_settled("{\"gpus\":0.5,\"nodes\":2}", "-g 0.5 is a part of a single GPU on one node");
    check_settled("{\"begin\":\"2026-11-22T12:00:00.000Z\",\"deadline\":\"2026-11-22T11:00:00.000Z\"}",
        "--deadline is not after --begin, so the job could never start");
}

TEST(nodes_and_gpus_of_each_make_the_number)
{
    _cleanup_json_ json_t *request = json_pack("{s:i, s:i}", "nodes", 2, "gpus_per_node", 4);
    assert_int_equal(ask_resolve(request, NULL), 0);
    assert_int_equal(field_integer(request, "gpus", 0), 8);
}
