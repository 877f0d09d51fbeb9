/* SPDX-License-Identifier: MIT */
#include "cli/show/job_columns.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "unit_test.h"

static void check(json_t *job, const char *expected)
{
    assert_non_null(job);
    _cleanup_free_ char *where = job_where(job);
    assert_string_equal(where, expected);
    json_decref(job);
}

TEST(one_node_is_named_with_its_gpus)
{
    check(json_pack("{s:n}", "node"), "-");
    check(json_pack("{s:s, s:[]}", "node", "gpu1", "granted"), "gpu1");
    check(json_pack("{s:s, s:[{s:i}, {s:i}, {s:i}]}", "node", "gpu1", "granted", "index", 0, "index", 1,
              "index", 5),
        "gpu1:0,1,5");
}

/* `count` nodes gpu1, gpu2 and so on with two GPUs each, the last with one. */
static json_t *job_on(size_t count)
{
    json_t *ranks = json_array(), *granted = json_array();
    for (size_t i = 1; i <= count; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "gpu%zu", i);
        (void)json_array_append_new(ranks, json_pack("{s:s}", "node", name));
        for (int k = 0; k < (i == count ? 1 : 2); k++)
            (void)json_array_append_new(granted, json_pack("{s:s, s:i}", "node", name, "index", k));
    }
    return json_pack("{s:s, s:o, s:o}", "node", "gpu1", "ranks", ranks, "granted", granted);
}

TEST(few_nodes_are_named_one_by_one)
{
    check(job_on(2), "gpu1:0,1 gpu2:0");
    check(job_on(4), "gpu1:0,1 gpu2:0,1 gpu3:0,1 gpu4:0");
}

TEST(many_nodes_with_the_same_gpus_are_one_list)
{
    check(job_on(5), "gpu[1-4]:0,1 gpu5:0");
    check(job_on(1000), "gpu[1-999]:0,1 gpu1000:0");
}
