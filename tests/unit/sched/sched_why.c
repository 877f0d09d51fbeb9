/* SPDX-License-Identifier: MIT */
/* Why a job waits, and when it will start: small scenes reckoned by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job/cluster_change.h"
#include "scene.h"
#include "sched/why.h"
#include "unit_test.h"

static int open_scene(void **state)
{
    struct scene *scene = scene_new();
    scene_open(scene, 1, 4);
    *state = scene;
    return 0;
}

#define CASE(name, scene) TEST_ON(name, struct scene *scene, open_scene, scene_close)

static const struct why_reason *reason_of(
    struct scene *scene, uint64_t job, enum why_code code, struct why *why)
{
    why_reasons(scene->sched, scene->now_ms, job, false, why);
    for (size_t i = 0; i < why->n_reasons; i++)
        if (why->reasons[i].code == code) {
            assert_true(why->reasons[i].text[0] != '\0');
            return &why->reasons[i];
        }
    fail_msg("%s is not among %zu reasons (the first is %s)", why_code_name(code), why->n_reasons,
        why->n_reasons > 0 ? why_code_name(why->reasons[0].code) : "none");
    return NULL;
}

CASE(what_keeps_it_from_the_queue_is_reported, scene)
{
    struct why why;
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.hold = BLOCK_HELD_USER | BLOCK_HELD_ADMIN;
    spec.begin_ms = scene->now_ms + 5000;
    uint64_t job = scene_submit(scene, &spec);
    assert_int_equal(reason_of(scene, job, WHY_HELD_USER, &why)->until_ms, TIME_NEVER);
    assert_int_equal(reason_of(scene, job, WHY_HELD_ADMIN, &why)->until_ms, TIME_NEVER);
    assert_int_equal(reason_of(scene, job, WHY_BEGIN_TIME, &why)->until_ms, spec.begin_ms);
    assert_int_equal(why.n_reasons, 3);
    why_reasons(scene->sched, scene->now_ms, job, true, &why);
    assert_true(why.n_reasons >= 1);
    uint64_t failed = scene_add(scene, 1, 60);
    sched_stopped(scene->sched, scene->now_ms, failed, 0);
    sched_block(scene->sched, scene->now_ms, failed, BLOCK_BACKOFF, 0, scene->now_ms + 7000);
    assert_int_equal(reason_of(scene, failed, WHY_BACKOFF, &why)->until_ms, scene->now_ms + 7000);
}

static int open_scene_of_default(void **state)
{
    struct scene *scene = scene_new();
    scene->settings.policy = &policy_default;
    scene_open(scene, 1, 4);
    *state = scene;
    return 0;
}

TEST_ON(a_job_that_was_overtaken_is_told_why, struct scene *scene, open_scene_of_default, scene_close)
{
    struct why why;
    (void)scene_add(scene, 4, 600);
    int64_t submitted_ms = scene->now_ms;
    uint64_t wide = scene_add(scene, 4, 6000);
    scene_wait(scene, 1);
    assert_int_equal(scene_add(scene, 4, 60), wide + 1);
    assert_string_equal(reason_of(scene, wide, WHY_PRIORITY, &why)->text,
        "1 job is ahead of it in the queue; later submissions are ahead because they are expected to be "
        "shorter (job 3: 1m00s, this one: 1h40m; with a time limit of 1m00s or less it would be ahead of job "
        "3)");
    assert_int_equal(why.overtaken_until_ms, submitted_ms + INT64_C(30) * 6000 * 1000);
    assert_int_equal(why.promised_ms, submitted_ms + INT64_C(60) * 24 * 3600 * 1000);
    assert_string_equal(why.promise_basis, "60d00h after it, the age cap");
    why_reasons(scene->sched, scene->now_ms, wide, true, &why);
    assert_string_equal(why.reasons[0].text,
        "requested 4 GPUs; 0 of 4 are free; after job 3, which is expected to take 1m00s, this one 1h40m");
    why_reasons(scene->sched, scene->now_ms, wide + 1, true, &why);
    assert_string_equal(why.reasons[0].text, "requested 4 GPUs; 0 of 4 are free");
    struct sched_job_spec urgent = scene_job(scene, 4, 60000);
    urgent.key.priority = 5;
    uint64_t first = scene_submit(scene, &urgent);
    reason_of(scene, wide, WHY_RESOURCES, &why);
    sched_withdraw(scene->sched, scene->now_ms, wide + 1);
    assert_string_equal(
        reason_of(scene, wide, WHY_PRIORITY, &why)->text, "1 job is ahead of it in the queue");
    assert_int_equal(why.reasons[why.n_reasons - 1].jobs[0], first);
}

CASE(nobody_is_ahead_of_a_job_that_waits_for_its_begin_time_alone, scene)
{
    _cleanup_(why_clear) struct why why;
    (void)scene_add(scene, 2, 60);
    struct sched_job_spec spec = scene_job(scene, 2, 60);
    spec.begin_ms = scene->now_ms + 600000;
    uint64_t job = scene_submit(scene, &spec);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    assert_int_equal(why.n_ahead, 0);
    assert_int_equal(why.eta_ms, spec.begin_ms);
    assert_string_equal(why.eta_basis, "its begin time");
    assert_string_equal(why.latest_basis, "");
}

CASE(dependencies_are_told_with_the_jobs_and_their_end, scene)
{
    struct why why;
    uint64_t first = scene_add(scene, 1, 60);
    struct ask_after after = { .job = first, .kind = AFTER_OK };
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.after = &after;
    spec.n_after = 1;
    uint64_t job = scene_submit(scene, &spec);
    const struct why_reason *reason = reason_of(scene, job, WHY_DEPENDENCY, &why);
    assert_int_equal(reason->n_jobs, 1);
    assert_int_equal(reason->jobs[0], first);
    assert_int_equal(reason->until_ms, scene->now_ms + 60000);
    scene_fail(scene, first);
    assert_int_equal(reason_of(scene, job, WHY_DEPENDENCY_NEVER, &why)->until_ms, TIME_NEVER);
}

CASE(the_holders_of_what_it_needs_are_told, scene)
{
    struct why why;
    uint64_t first = scene_add(scene, 3, 60);
    uint64_t job = scene_add(scene, 2, 60);
    const struct why_reason *reason = reason_of(scene, job, WHY_RESOURCES, &why);
    assert_int_equal(reason->jobs[0], first);
    assert_int_equal(reason->until_ms, scene->now_ms + 60000);
    assert_non_null(strstr(reason->text, "1 of 4"));
}

CASE(gpu_memory_is_told_when_memory_was_asked, scene)
{
    struct why why;
    scene_add(scene, 4, 60);
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.key.request.gpu_mem = 8ULL << 30;
    (void)reason_of(scene, scene_submit(scene, &spec), WHY_GPU_MEMORY, &why);
}

CASE(closed_gpus_are_told, scene)
{
    struct why why;
    struct cluster *cluster = sched_cluster(scene->sched);
    struct cluster_node *node = &cluster->nodes[0];
    node->gpus[0].is_paused = true;
    cluster_touch(cluster, node);
    uint64_t job = scene_add(scene, 4, 60);
    const struct why_reason *reason = reason_of(scene, job, WHY_GPU_PAUSED, &why);
    assert_int_equal(reason->n_gpus, 1);
    assert_int_equal(reason->gpus[0].gpu, 0);
    node->gpus[0].is_paused = false;
    node->is_drained = true;
    cluster_touch(cluster, node);
    assert_int_equal(reason_of(scene, job, WHY_NODE_DRAINED, &why)->n_gpus, 4);
    node->is_up = false;
    cluster_touch(cluster, node);
    assert_int_equal(reason_of(scene, job, WHY_NODE_DOWN, &why)->n_gpus, 4);
}

CASE(gpus_that_others_use_or_that_are_not_well_are_told, scene)
{
    struct why why;
    struct cluster *cluster = sched_cluster(scene->sched);
    struct cluster_node *node = &cluster->nodes[0];
    node->gpus[2].closed = DEVICE_EXTERNAL;
    cluster_touch(cluster, node);
    uint64_t job = scene_add(scene, 4, 60);
    const struct why_reason *reason = reason_of(scene, job, WHY_GPU_EXTERNAL, &why);
    assert_int_equal(reason->n_gpus, 1);
    assert_int_equal(reason->gpus[0].gpu, 2);
    assert_string_equal(reason->text, "1 suitable GPU is used by external processes");
    node->gpus[2].closed = 0;
    node->gpus[3].memory_external = 1ULL << 30;
    cluster_touch(cluster, node);
    assert_int_equal(reason_of(scene, job, WHY_GPU_EXTERNAL, &why)->gpus[0].gpu, 3);
    node->gpus[3].closed = DEVICE_UNCLEAN;
    cluster_touch(cluster, node);
    assert_string_equal(reason_of(scene, job, WHY_GPU_PAUSED, &why)->text,
        "1 suitable GPU is still being cleared of the previous job");
    node->gpus[3].closed = DEVICE_UNHEALTHY | DEVICE_EXTERNAL;
    cluster_touch(cluster, node);
    assert_string_equal(reason_of(scene, job, WHY_GPU_PAUSED, &why)->text, "1 suitable GPU is not healthy");
    node->gpus[3].closed = 0;
    node->gpus[3].memory_external = 0;
    node->gpus[3].is_present = false; // its node answers, and it does not
    cluster_touch(cluster, node);
    assert_string_equal(reason_of(scene, job, WHY_GPU_PAUSED, &why)->text, "1 suitable GPU is not healthy");
    for (size_t i = 0; i < why.n_reasons; i++)
        assert_int_not_equal(why.reasons[i].code, WHY_NODE_DOWN);
}

CASE(a_share_that_waits_for_a_crowded_gpu_is_told_so, scene)
{
    struct why why;
    struct cluster *cluster = sched_cluster(scene->sched);
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    scene_add(scene, 3, 600);
    spec.key.request.share = 400;
    (void)scene_submit(scene, &spec);
    cluster->nodes[0].gpus[3].closed = DEVICE_CROWDED;
    cluster_touch(cluster, &cluster->nodes[0]);
    spec = scene_job(scene, 1, 60);
    spec.key.request.share = 400;
    uint64_t job = scene_submit(scene, &spec);
    assert_false(scene_runs(scene, job));
    const struct why_reason *reason = reason_of(scene, job, WHY_RESOURCES, &why);
    assert_non_null(strstr(reason->text, "1 shared GPU is too full or too busy for one more job"));
    scene_end(scene, 2);
    assert_true(scene_runs(scene, job)); // alone there, nothing is crowded
}

CASE(what_is_kept_for_others_is_told_as_priority, scene)
{
    struct why why;
    scene_add(scene, 3, 60);
    uint64_t head = scene_add(scene, 4, 60);
    uint64_t job = scene_add(scene, 1, 600); // it would delay the head
    assert_false(scene_runs(scene, job));
    const struct why_reason *reason = reason_of(scene, job, WHY_PRIORITY, &why);
    assert_int_equal(reason->n_jobs, 1);
    assert_int_equal(reason->jobs[0], head);
    assert_int_equal(why.position, 2);
    assert_int_equal(why.n_reasons, 1);
}

CASE(limits_are_told, scene)
{
    struct why why;
    struct fairshare *fairshare = sched_fairshare(scene->sched);
    fairshare_account(fairshare, 1, ACCOUNT_USER)->limits.jobs = 1;
    fairshare_account(fairshare, 2, ACCOUNT_GROUP)->limits.gpu_milli = 1000;
    scene_add(scene, 1, 60);
    (void)reason_of(scene, scene_add(scene, 1, 60), WHY_USER_LIMIT, &why);
    struct sched_job_spec spec = scene_job(scene, 2, 60);
    spec.key.uid = spec.key.gid = 2;
    (void)reason_of(scene, scene_submit(scene, &spec), WHY_GROUP_LIMIT, &why);
    fairshare_account(fairshare, 3, ACCOUNT_USER)->limits.gpu_seconds = 3600;
    spec = scene_job(scene, 2, 7200);
    spec.key.uid = spec.key.gid = 3;
    uint64_t used = scene_submit(scene, &spec);
    scene_wait(scene, 3600);
    scene_end(scene, used);
    spec = scene_job(scene, 1, 60);
    spec.key.uid = spec.key.gid = 3;
    int64_t until_ms = reason_of(scene, scene_submit(scene, &spec), WHY_QUOTA, &why)->until_ms;
    assert_true(until_ms > scene->now_ms && until_ms < TIME_NEVER);
}

CASE(reservations_are_told, scene)
{
    struct why why;
    struct sched_request request = { .gpus = 4 };
    uint32_t uid = 9;
    char name[] = "class";
    struct sched_reservation reservation = { .id = 1,
        .name = name,
        .uids = &uid,
        .n_uids = 1,
        .from_ms = scene->now_ms,
        .until_ms = scene->now_ms + 900000 };
    assert_int_equal(
        sched_reserve(scene->sched, scene->now_ms, &request, &reservation, &(struct error){ 0 }), 0);
    free(reservation.gpus);
    (void)reason_of(scene, scene_add(scene, 1, 60), WHY_RESERVATION, &why);
}

CASE(what_never_fits_is_reported, scene)
{
    _cleanup_(why_clear) struct why why;
    (void)reason_of(scene, scene_add(scene, 5, 60), WHY_NEVER_FITS, &why);
    why_explain(scene->sched, scene->now_ms, 1, NULL, &why);
    assert_int_equal(why.eta_ms, TIME_NEVER);
}

/* The sizes of nodes are known from before mgpud started. */
CASE(node_that_has_not_reported_since_the_start_is_named, scene)
{
    struct why why;
    struct cluster *known = sched_known(scene->sched);
    struct cluster_node *node = cluster_set_node(known, "n7", 64000, 256ULL << 30);
    for (uint32_t g = 0; g < 8; g++) {
        char uuid[32];
        (void)snprintf(uuid, sizeof(uuid), "GPU-7-%u", g);
        cluster_set_gpu(known, node, g, uuid, NULL, 24ULL << 30, true);
    }
    cluster_touch(known, node);
    const struct why_reason *reason = reason_of(scene, scene_add(scene, 5, 60), WHY_NODE_DOWN, &why);
    assert_string_equal(reason->text, "node n7 has not reported since mgpud started");
    assert_int_equal(why.n_reasons, 1);
    (void)reason_of(scene, scene_add(scene, 9, 60), WHY_NEVER_FITS, &why);
}

CASE(who_will_start_in_the_next_pass_has_no_reason, scene)
{
    struct why why;
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    sched_submit(scene->sched, scene->now_ms, &spec);
    why_reasons(scene->sched, scene->now_ms, spec.id, false, &why);
    assert_int_equal(why.n_reasons, 0);
}

/* 4 GPUs; 1: all for 100 s (limit 200), 2: all for 50 s (limit 80), 3: asked about. */
CASE(the_start_is_forecast_likely_and_latest, scene)
{
    struct why why;
    int64_t from = scene->now_ms;
    struct sched_job_spec spec = scene_job(scene, 4, 100);
    spec.key.limit_ms = 200000;
    scene_submit(scene, &spec);
    spec = scene_job(scene, 4, 50);
    spec.key.limit_ms = 80000;
    scene_submit(scene, &spec);
    uint64_t job = scene_add(scene, 4, 10);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    assert_int_equal(why.eta_ms, from + 150000);
    assert_int_equal(why.latest_ms, from + 280000);
    assert_int_equal(why.n_ahead, 2);
    assert_true(why.ahead[0].is_running);
    assert_int_equal(why.ahead[1].start_ms, from + 100000);
    why_clear(&why);
    assert_int_equal(sched_queue(scene->sched)->length, 2);
}

CASE(a_job_without_a_limit_leaves_the_latest_start_open, scene)
{
    _cleanup_(why_clear) struct why why;
    scene_add(scene, 4, 100);
    uint64_t job = scene_add(scene, 4, 10);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    assert_int_equal(why.eta_ms, scene->now_ms + 100000);
    assert_int_equal(why.latest_ms, TIME_NEVER);
    assert_non_null(strstr(why.latest_basis, "no time limit"));
}

/* 4 GPUs; 1: two for 50 s without a limit, 2: two for 100 s (limit 300), 3: asked about. The likely start is
 * the end of 1, the latest is the limit of 2. */
CASE(the_latest_start_does_not_rest_on_a_limit_that_is_none, scene)
{
    _cleanup_(why_clear) struct why why;
    int64_t from = scene->now_ms;
    uint64_t endless = scene_add(scene, 2, 50);
    struct sched_job_spec spec = scene_job(scene, 2, 100);
    spec.key.limit_ms = 300000;
    scene_submit(scene, &spec);
    uint64_t job = scene_add(scene, 2, 10);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    assert_int_equal(why.eta_ms, from + 50000);
    assert_int_equal(why.latest_ms, from + 300000);
    assert_int_equal(why.ahead[0].job, endless);
    assert_string_equal(why.latest_basis, "from time limits of other jobs: job 1 ahead of it has none");
}

CASE(a_begin_time_is_the_likely_start, scene)
{
    _cleanup_(why_clear) struct why why;
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.begin_ms = scene->now_ms + 90000;
    uint64_t job = scene_submit(scene, &spec);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    assert_int_equal(why.eta_ms, spec.begin_ms);
}

CASE(the_cheapest_change_is_reported, scene)
{
    _cleanup_(why_clear) struct why why;
    scene_add(scene, 3, 600);
    uint64_t job = scene_add(scene, 2, 600);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    assert_true(why.has_change);
    assert_string_equal(why.change, "-g 1 would start now, on n0:3");
    assert_int_equal(why.changed.request.gpus, 1);
}

CASE(all_gpus_of_a_change_are_named, scene)
{
    struct why why;
    scene_add(scene, 2, 600);
    uint64_t job = scene_add(scene, 3, 600);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    assert_string_equal(why.change, "-g 2 would start now, on n0:2,3");
    why_clear(&why);
}

/* 1 CPU and 1 GiB of the node's 64 CPUs and memory are those of a job that runs without its GPU. */
CASE(what_jobs_keep_that_started_early_is_named, scene)
{
    struct cluster *cluster = sched_cluster(scene->sched);
    struct why why;
    cluster_keep(cluster, &cluster->nodes[0], 1000, 1ULL << 30);
    struct sched_job_spec spec = scene_job(scene, 0, 60);
    spec.key.request.cpu_milli = cluster->nodes[0].cpu_milli;
    uint64_t job = scene_submit(scene, &spec);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    const char *text = reason_of(scene, job, WHY_RESOURCES, &why)->text;
    assert_non_null(
        strstr(text, "no node has that much free; jobs that started before their GPUs were free keep "
                     "1 CPU and 1 GiB on n0 until they end"));
    assert_int_equal(why.reasons[0].until_ms, TIME_NEVER);
    why_clear(&why);
    cluster_keep(cluster, &cluster->nodes[0], 0, 0);
}

/* A job of its own has the rest, too: the early one alone does not explain it. */
CASE(what_they_keep_is_not_named_when_something_else_is_missing, scene)
{
    struct cluster *cluster = sched_cluster(scene->sched);
    struct why why;
    struct sched_job_spec spec = scene_job(scene, 0, 60);
    spec.key.request.cpu_milli = 2000;
    scene_submit(scene, &spec);
    cluster_keep(cluster, &cluster->nodes[0], 1000, 1ULL << 30);
    spec = scene_job(scene, 0, 60);
    spec.key.request.cpu_milli = cluster->nodes[0].cpu_milli;
    uint64_t job = scene_submit(scene, &spec);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    assert_null(strstr(reason_of(scene, job, WHY_RESOURCES, &why)->text, "started before"));
    why_clear(&why);
    cluster_keep(cluster, &cluster->nodes[0], 0, 0);
}

CASE(a_job_that_does_not_exist_yet_can_be_asked_about, scene)
{
    struct why why;
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.id = 0;
    why_explain(scene->sched, scene->now_ms, 0, &spec, &why);
    assert_int_equal(why.n_reasons, 0);
    assert_int_equal(why.eta_ms, scene->now_ms);
    why_clear(&why);
    scene_add(scene, 4, 100);
    why_explain(scene->sched, scene->now_ms, 0, &spec, &why);
    assert_int_equal(why.eta_ms, scene->now_ms + 100000);
    assert_int_equal(why.reasons[0].code, WHY_RESOURCES);
    why_clear(&why);
    assert_int_equal(sched_queue(scene->sched)->length, 0);
}

/* GPUs 2 and 3 are for user 9 alone, for 4 h; user 1 has the other two for 6 h. */
static uint64_t wait_beside_a_reservation(struct scene *scene)
{
    struct sched_request request = { .gpus = 2 };
    uint32_t uid = 9;
    char name[] = "class";
    struct sched_job_spec spec = scene_job(scene, 2, 21600);
    spec.key.limit_ms = 21600000;
    scene_submit(scene, &spec);
    struct sched_reservation reservation = { .id = 1,
        .name = name,
        .uids = &uid,
        .n_uids = 1,
        .from_ms = scene->now_ms,
        .until_ms = scene->now_ms + 14400000 };
    assert_int_equal(
        sched_reserve(scene->sched, scene->now_ms, &request, &reservation, &(struct error){ 0 }), 0);
    free(reservation.gpus);
    return scene_add(scene, 2, 60);
}

CASE(a_reservation_that_nobody_uses_is_forecast_to_be_returned_but_not_for_certain, scene)
{
    _cleanup_(why_clear) struct why why;
    uint64_t job = wait_beside_a_reservation(scene);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    assert_int_equal(why.eta_ms, scene->now_ms + 1800000);
    assert_int_equal(why.latest_ms, scene->now_ms + 14400000);
}

CASE(a_reservation_whose_user_waits_is_forecast_to_be_used_to_its_end, scene)
{
    _cleanup_(why_clear) struct why why;
    uint64_t job = wait_beside_a_reservation(scene);
    struct sched_job_spec spec = scene_job(scene, 4, 60); // does not start on the two alone
    spec.key.uid = 9;
    spec.key.priority = -1;
    scene_submit(scene, &spec);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    assert_int_equal(why.eta_ms, scene->now_ms + 14400000);
}

CASE(a_job_that_a_limit_keeps_out_of_the_queue_has_no_position, scene)
{
    struct why why;
    struct sched_job_status status;
    fairshare_account(sched_fairshare(scene->sched), 1, ACCOUNT_USER)->limits.jobs = 1;
    scene_add(scene, 1, 60);
    for (uint32_t gpus = 1; gpus <= 3; gpus++) { // each in a class of its own
        uint64_t job = scene_add(scene, gpus, 60);
        assert_true(sched_job_status(scene->sched, job, scene->now_ms, &status));
        assert_int_equal(status.position, 0);
        why_reasons(scene->sched, scene->now_ms, job, false, &why);
        assert_int_equal(why.position, 0);
    }
}

CASE(all_that_closes_a_gpu_is_told_and_that_it_is_taken, scene)
{
    struct why why;
    scene_add(scene, 3, 600);
    struct cluster *cluster = sched_cluster(scene->sched);
    struct cluster_node *node = &cluster->nodes[0];
    node->gpus[3].is_paused = true;
    node->is_drained = true;
    cluster_touch(cluster, node);
    uint64_t job = scene_add(scene, 2, 60);
    assert_int_equal(reason_of(scene, job, WHY_GPU_PAUSED, &why)->gpus[0].gpu, 3);
    assert_int_equal(reason_of(scene, job, WHY_NODE_DRAINED, &why)->n_gpus, 4);
    assert_non_null(
        strstr(reason_of(scene, job, WHY_RESOURCES, &why)->text, "jobs use 3 of 4 suitable GPUs"));
}

CASE(only_jobs_between_it_and_its_gpus_are_ahead, scene)
{
    _cleanup_(why_clear) struct why why;
    struct gpu_pick first = { NULL, 0 }, last = { NULL, 3 };
    struct sched_job_spec spec = scene_job(scene, 1, 100);
    spec.key.request.picks = &first;
    spec.key.request.n_picks = 1;
    uint64_t holder = scene_submit(scene, &spec);
    scene_add(scene, 2, 50); // on GPUs that it does not want
    spec = scene_job(scene, 1, 30);
    spec.key.request.picks = &last;
    spec.key.request.n_picks = 1;
    scene_submit(scene, &spec);
    spec.id = scene_job(scene, 1, 30).id; // waits before it, for another GPU
    scene_submit(scene, &spec);
    spec = scene_job(scene, 1, 10);
    spec.key.request.picks = &first;
    spec.key.request.n_picks = 1;
    uint64_t job = scene_submit(scene, &spec);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    assert_int_equal(why.n_ahead, 1);
    assert_int_equal(why.ahead[0].job, holder);
    assert_int_equal(why.n_reasons, 1);
    assert_int_equal(why.reasons[0].code, WHY_RESOURCES);
    assert_int_equal(why.reasons[0].n_jobs, 1);
}

TEST_WITH(under_a_strict_policy_every_job_before_it_is_in_the_way, open_scene, scene_close)
{
    struct scene *scene = *state;
    struct why why;
    struct gpu_pick first = { NULL, 0 };
    scene_free(scene);
    *state = scene = scene_new();
    scene->settings.policy = policy_find("fifo");
    scene_open(scene, 1, 4);
    struct sched_job_spec spec = scene_job(scene, 1, 100);
    spec.key.request.picks = &first;
    spec.key.request.n_picks = 1;
    scene_submit(scene, &spec);
    spec.id = scene_job(scene, 1, 100).id;
    uint64_t head = scene_submit(scene, &spec);
    struct gpu_pick other = { NULL, 2 };
    spec = scene_job(scene, 1, 100);
    spec.key.request.picks = &other;
    spec.key.request.n_picks = 1;
    const struct why_reason *reason = reason_of(scene, scene_submit(scene, &spec), WHY_PRIORITY, &why);
    assert_int_equal(reason->jobs[0], head);
}

TEST_WITH(the_basis_of_a_start_is_the_true_one, open_scene, scene_close)
{
    struct scene *scene = *state;
    struct why why;
    scene_add(scene, 4, 0); // no estimate, and nothing has ended yet
    uint64_t job = scene_add(scene, 4, 10);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    assert_non_null(strstr(why.eta_basis, "assumed until jobs have ended here"));
    why_clear(&why);
    scene_free(scene);
    *state = scene = scene_new();
    scene_open(scene, 1, 4);
    struct sched_job_spec spec = scene_job(scene, 4, 0);
    spec.key.uid = 7; // somebody else's
    uint64_t ended = scene_submit(scene, &spec);
    scene_wait(scene, 600);
    scene_end(scene, ended);
    scene_add(scene, 4, 0);
    job = scene_add(scene, 4, 10);
    why_explain(scene->sched, scene->now_ms, job, NULL, &why);
    assert_non_null(strstr(why.eta_basis, "as long as earlier jobs here"));
    why_clear(&why);
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

TEST_WITH(forecasts_of_large_queues_and_endless_jobs_end_soon, open_scene, scene_close)
{
    struct scene *scene = *state;
    scene_free(scene);
    *state = scene = scene_new();
    scene_open(scene, 40, 4);
    for (int i = 0; i < 160; i++)
        scene_add(scene, 1, 0); // no limit, no estimate
    struct sched_job_spec spec = scene_job(scene, 1, 60);
    spec.is_array = true;
    spec.elements = 100000;
    scene_submit(scene, &spec);
    for (int i = 0; i < 1000; i++) {
        spec = scene_job(scene, 1 + i % 4, 100 + i % 7);
        sched_submit(scene->sched, scene->now_ms, &spec);
    }
    struct why why;
    double began = seconds();
    scene_wait(scene, 0);
    why_explain(scene->sched, scene->now_ms, scene->last_job, NULL, &why);
    why_clear(&why);
    print_message("%.2f s\n", seconds() - began);
    assert_true(seconds() - began < 30); // far less without sanitizers
}
