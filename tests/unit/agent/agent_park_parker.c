/* SPDX-License-Identifier: MIT */
/* Orders that follow each other before the first is carried out: after a restore, mgpud knows none of them.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/confine/confine.h"
#include "agent/park/parker.h"
#include "base/files.h"
#include "base/memory.h"
#include "job/launch.h"
#include "job/park.h"
#include "unit_test.h"

struct node {
    char top[64];
    char *run_dir, *state_dir;
    struct confine_state *cells;
    struct launcher *launcher;
    struct gpu_check *check;
    struct event_base *base;
    struct parker *parker;
    int dirfd; // of the attempt
    uint64_t asked;
    struct message_park_result result; // the last one
};

static const struct spool_id id = { .job = 42, .attempt = 1 };

static uint64_t ask(void *arg, const struct record_list *grants)
{
    struct node *node = arg;
    return ++node->asked;
}

static void on_result(void *arg, const struct message_park_result *result)
{
    struct node *node = arg;
    node->result = *result;
    node->result.text = NULL;
    (void)event_base_loopbreak(node->base);
}

/* Of an attempt that is saved, and whose GPU has not been seen clean since. */
static void make_attempt(struct node *node)
{
    struct launch_park park = { .number = 1, .outcome = PARK_DONE };
    struct record_list grants = { 0 };
    char name[SPOOL_NAME_SIZE];
    spool_name(&id, name);
    assert_int_equal(mkdirat(launcher_spool_fd(node->launcher), name, 0700), 0);
    node->dirfd = launcher_open_entry(node->launcher, &id);
    assert_true(node->dirfd >= 0);
    assert_int_equal(file_write_record(node->dirfd, SPOOL_PARK, &launch_park_record, &park, false), 0);
    (void)gpu_grants_add(&grants, 0, "GPU-0", 0, 0);
    gpu_check_take(node->check, &id, &grants);
    gpu_grants_clear(&grants);
    gpu_check_resume(node->check, &id);
    gpu_check_end(node->check, &id, 1000);
}

static int setup(void **state)
{
    struct node *node = xcalloc(1, sizeof(*node));
    (void)snprintf(node->top, sizeof(node->top), "/tmp/mgpu-parker.XXXXXX");
    assert_non_null(mkdtemp(node->top));
    node->run_dir = xasprintf("%s/run", node->top);
    node->state_dir = xasprintf("%s/state", node->top);
    assert_int_equal(mkdir(node->run_dir, 0755), 0);
    assert_int_equal(confine_none.open(node->run_dir, NULL, &node->cells, NULL), 0);
    const struct launcher_options options = {
        .run_dir = node->run_dir, .state_dir = node->state_dir, .shepherd = "/bin/true"
    };
    assert_int_equal(launcher_open(&options, &confine_none, node->cells, &node->launcher, NULL), 0);
    node->check = gpu_check_new(ask, node);
    node->base = event_base_new();
    const struct parker_parts parts = {
        .base = node->base, .launcher = node->launcher, .check = node->check, .report = on_result, .arg = node
    };
    node->parker = parker_new(&parts);
    make_attempt(node);
    *state = node;
    return 0;
}

static int teardown(void **state)
{
    struct node *node = *state;
    parker_free(node->parker);
    event_base_free(node->base);
    gpu_check_free(node->check);
    closep(&node->dirfd);
    launcher_close(node->launcher);
    confine_none.close(node->cells);
    (void)unit_test_remove(node->top);
    free(node->run_dir);
    free(node->state_dir);
    free(node);
    return 0;
}

#define CASE(name, node) TEST_ON(name, struct node *node, setup, teardown)

static void order(struct node *node, enum park_action action, uint32_t number)
{
    const struct message_park park = { .id = id, .number = number, .action = action, .timeout_ms = 10000 };
    parker_order(node->parker, &park);
}

static struct known_attempt recall(const struct node *node)
{
    struct known_attempt known = { .park_number = 1, .park_seen = PARK_SEEN_PARKED }; // by the spool
    parker_recall(node->parker, &id, &known);
    return known;
}

/* The GPU is clean. */
static void report(struct node *node)
{
    struct gpu_state gpu = { .uuid = (char[]){ "GPU-0" },
        .memory_bytes = UINT64_C(24) << 30,
        .valid = GPU_MEMORY_USED | GPU_PROCESSES,
        .answers = node->asked };
    struct record_list gpus = { &gpu, 1 };
    (void)gpu_check_report(node->check, &gpus, 2000);
    parker_note_gpus(node->parker, &gpus);
    free(gpu.trouble);
}

static struct launch_park read_spool(const struct node *node)
{
    struct launch_park park = { 0 };
    assert_int_equal(file_read_record(node->dirfd, SPOOL_PARK, &launch_park_record, &park, NULL), 0);
    return park;
}

CASE(an_order_that_waits_for_gpus_is_recalled, node)
{
    assert_int_equal(recall(node).park_number, 1);
    assert_int_equal(recall(node).park_seen, PARK_SEEN_PARKED);
    order(node, PARK_RETURN, 2);
    assert_int_equal(read_spool(node).number, 1);
    assert_int_equal(recall(node).park_number, 2);
    assert_int_equal(recall(node).park_seen, PARK_SEEN_CHANGING);
}

CASE(a_check_changes_nothing, node)
{
    order(node, PARK_CHECK, 2);
    assert_int_equal(recall(node).park_number, 2);
    assert_int_equal(recall(node).park_seen, PARK_SEEN_PARKED);
}

/* mgpud, restored from a backup, believes that it is parked, and has other jobs on its GPU. */
CASE(a_return_that_waits_for_gpus_is_dropped_by_a_later_order, node)
{
    order(node, PARK_RETURN, 2);
    order(node, PARK_SAVE, 1002);
    (void)event_base_dispatch(node->base);
    assert_int_equal(node->result.number, 1002);
    assert_int_equal(node->result.action, PARK_SAVE);
    assert_int_equal(node->result.outcome, PARK_DONE);
    report(node);
    struct launch_park park = read_spool(node);
    assert_int_equal(park.number, 1002);
    assert_true(launch_is_parked(&park));
    assert_int_equal(recall(node).park_seen, PARK_SEEN_PARKED);
}

/* mgpud, restored from a backup, does not know that the driver lost the job, and has other jobs on its GPU.
 */
CASE(a_lost_attempt_that_is_to_be_saved_stays_lost, node)
{
    struct launch_park park = {
        .number = 2, .is_return = 1, .outcome = PARK_LOST, .text = (char[]){ "given up" }
    };
    assert_int_equal(file_write_record(node->dirfd, SPOOL_PARK, &launch_park_record, &park, false), 0);
    order(node, PARK_SAVE, 1002);
    (void)event_base_dispatch(node->base);
    assert_int_equal(node->result.number, 1002);
    assert_int_equal(node->result.outcome, PARK_LOST);
}

/* The later one does not report it as parked before its GPU is clean either. */
CASE(a_save_that_waits_for_gpus_is_continued_by_a_later_order, node)
{
    order(node, PARK_SAVE, 1);
    (void)event_base_dispatch(node->base); // its helper ends
    assert_int_equal(recall(node).park_seen, PARK_SEEN_CHANGING);
    order(node, PARK_SAVE, 1001);
    (void)event_base_dispatch(node->base);
    assert_int_equal(node->result.number, 0);
    report(node);
    assert_int_equal(node->result.number, 1001);
    assert_int_equal(node->result.outcome, PARK_DONE);
    assert_int_equal(recall(node).park_seen, PARK_SEEN_PARKED);
}
