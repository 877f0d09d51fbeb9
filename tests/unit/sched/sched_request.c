/* SPDX-License-Identifier: MIT */
#include "clusters.h"

#include <stdlib.h>

static void assert_text(const struct sched_request *request, const char *expected)
{
    char text[128];
    request_text(request, text, sizeof(text));
    assert_string_equal(text, expected);
}

TEST(a_copy_equals_and_hashes_like_its_original)
{
    char model[] = "h200", node[] = "a";
    struct gpu_pick picks[] = { { node, 1 }, { NULL, 2 } };
    uint32_t allow[] = { 1, 2, 3 };
    struct sched_request request = { .gpus = 2,
        .model = model,
        .picks = picks,
        .n_picks = 2,
        .allow = allow,
        .n_allow = 3 },
                         copy;
    request_copy(&copy, &request);
    assert_true(request_equal(&request, &copy));
    assert_true(request_hash(&request) == request_hash(&copy));
    copy.allow[2] = 4;
    assert_false(request_equal(&request, &copy));
    assert_true(request_hash(&request) != request_hash(&copy));
    copy.allow[2] = 3;
    free(copy.picks[0].node);
    copy.picks[0].node = NULL;
    assert_false(request_equal(&request, &copy));
    request_clear(&copy);
    struct sched_request nothing = { 0 };
    assert_true(request_equal(&copy, &nothing));
}

/* Jobs of one class are placed as if they were one request. */
TEST(requests_that_differ_in_one_number_are_not_equal)
{
    const struct sched_request plain = { .gpus = 2 };
    const struct sched_request others[] = {
        { .gpus = 3 },
        { .gpus = 2, .nodes = 2 },
        { .gpus = 2, .gpus_per_node = 1 },
        { .gpus = 2, .share = 500 },
        { .gpus = 2, .gpu_mem = GIB },
        { .gpus = 2, .cpu_milli = 1000 },
        { .gpus = 2, .memory = GIB },
        { .gpus = 2, .adopted_pid = 7 },
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(request_equal(&plain, &others[i]));
        assert_true(request_hash(&plain) != request_hash(&others[i]));
    }
}

TEST(picks_on_several_nodes_span_and_others_do_not)
{
    char a[] = "a", b[] = "b";
    struct gpu_pick same[] = { { a, 0 }, { a, 1 } }, two[] = { { a, 0 }, { b, 1 } }, any[] = { { NULL, 0 } };
    assert_false(request_may_span(&(struct sched_request){ .gpus = 2, .picks = same, .n_picks = 2 }));
    assert_true(request_may_span(&(struct sched_request){ .gpus = 2, .picks = two, .n_picks = 2 }));
    assert_false(request_may_span(&(struct sched_request){ .gpus = 1, .picks = any, .n_picks = 1 }));
    assert_false(request_may_span(&(struct sched_request){ .gpus = 2, .nodes = 1 }));
    assert_true(request_may_span(&(struct sched_request){ .gpus = 2, .nodes = 2 }));
    assert_true(request_may_span(&(struct sched_request){ .gpus = 16 }));
}

TEST(a_request_is_told_in_words)
{
    char model[] = "h200";
    assert_text(&(struct sched_request){ .gpus = 2, .model = model, .gpu_mem = 8 * GIB },
        "2 GPUs (h200) with 8 GiB each");
    assert_text(&(struct sched_request){ .gpus = 1, .share = 250 }, "0.25 of a GPU");
    assert_text(&(struct sched_request){ .gpus = 1, .share = 125 }, "0.125 of a GPU");
    assert_text(&(struct sched_request){ .cpu_milli = 4000 }, "4 CPUs");
    assert_text(&(struct sched_request){ .cpu_milli = 1500 }, "1.500 CPUs");
}

static struct sched_request from(const struct job_ask *ask)
{
    struct sched_request request;
    struct error err;
    assert_int_equal(request_from_ask(ask, &request, &err), 0);
    return request;
}

TEST(picks_and_allowed_sets_are_taken_apart)
{
    char ids[] = "n1:0,2-3;n2:1", allow[] = "5,0-2";
    struct job_ask ask = { .gpus = 4, .gpu_ids = ids, .gpu_allow = allow, .gpu_share = 500 };
    _cleanup_(request_clear) struct sched_request request = from(&ask);
    assert_int_equal(request.n_picks, 4);
    assert_int_equal(request.gpus, 4);
    assert_string_equal(request.picks[2].node, "n1");
    assert_int_equal(request.picks[2].index, 3);
    assert_string_equal(request.picks[3].node, "n2");
    assert_int_equal(request.n_allow, 4);
    assert_int_equal(request.allow[3], 5);
    assert_true(request_is_shared(&request));
}

TEST(a_job_without_gpus_takes_one_cpu_and_a_gpu_job_none_unless_asked)
{
    struct job_ask none = { 0 }, gpu = { .gpus = 1 }, wide = { .nodes = 2, .gpus_per_node = 4, .gpus = 8 };
    struct sched_request request = from(&none);
    assert_int_equal(request.cpu_milli, 1000);
    request = from(&gpu);
    assert_int_equal(request.cpu_milli, 0);
    request = from(&wide);
    assert_int_equal(request.gpus, 8);
    assert_int_equal(request.nodes, 2);
}
