/* SPDX-License-Identifier: MIT */
/* Limits of device memory, in a made-up cgroup tree: few kernels have the dmem controller yet. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/confine/limit_files.h"
#include "agent/confine/limits.h"
#include "base/files.h"
#include "base/memory.h"
#include "unit_test.h"

#define REGION "drm/0000:03:00.0/vram0"

static const struct spool_id id = { .job = 5, .attempt = 2 };

/* root/mgpu/j5.2; limits of an attempt are files in it. */
struct tree {
    char root[64];
    char *instance, *attempt;
    struct limits *limits;
    struct launch_spec spec;
};

static void write_text(const char *dir, const char *name, const char *text)
{
    _cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_write(fd, name, text, strlen(text), false), 0);
}

static int setup(void **state)
{
    struct tree *tree = xcalloc(1, sizeof(*tree));
    (void)snprintf(tree->root, sizeof(tree->root), "/tmp/mgpu-dmem.XXXXXX");
    assert_non_null(mkdtemp(tree->root));
    tree->instance = xasprintf("%s/mgpu", tree->root);
    tree->attempt = xasprintf("%s/j5.2", tree->instance);
    assert_int_equal(make_directories(tree->attempt, 0755), 0);
    write_text(tree->root, "cgroup.controllers", "cpu dmem\n");
    write_text(tree->root, "cgroup.subtree_control", "");
    write_text(tree->root, "dmem.capacity", REGION " 8514437120\n");
    write_text(tree->instance, "cgroup.controllers", "dmem\n");
    write_text(tree->instance, "cgroup.subtree_control", "");
    write_text(tree->attempt, "dmem.max", "");
    tree->limits = limits_new(tree->root, NULL);
    *state = tree;
    return 0;
}

static int teardown(void **state)
{
    struct tree *tree = *state;
    _cleanup_free_ char *command = xasprintf("rm -r %s", tree->root);
    limits_free(tree->limits);
    record_clear(&launch_spec_record, &tree->spec);
    assert_int_equal(system(command), 0);
    free(tree->instance);
    free(tree->attempt);
    free(tree);
    return 0;
}

#define CASE(name, tree) TEST_ON(name, struct tree *tree, setup, teardown)

CASE(the_controller_is_enabled_and_its_regions_are_found_in_the_root, tree)
{
    char text[64];
    assert_null(limits_how(tree->limits, LIMIT_DMEM));
    assert_null(limits_regions(tree->limits));
    limits_enable_v2(tree->limits, tree->instance);
    assert_string_equal(limits_how(tree->limits, LIMIT_DMEM), "cgroup v2");
    assert_string_equal(limits_regions(tree->limits), REGION " 8514437120\n");
    assert_true(limit_files_read(tree->instance, "cgroup.subtree_control", text, sizeof(text)));
    assert_string_equal(text, "+dmem");
}

CASE(a_kernel_without_the_controller_has_a_reason_and_no_regions, tree)
{
    write_text(tree->root, "cgroup.controllers", "cpu memory\n");
    limits_enable_v2(tree->limits, tree->instance);
    assert_null(limits_how(tree->limits, LIMIT_DMEM));
    assert_null(limits_regions(tree->limits));
    assert_true(limits_why(tree->limits, LIMIT_DMEM)->message[0] != '\0');
    struct error err = { 0 };
    strings_add(&tree->spec.dmem, REGION " 1048576");
    assert_int_equal(limits_apply(tree->limits, &id, tree->attempt, &tree->spec, &err), -ENOTSUP);
}

/* The kernel would make it a threaded domain, in which no job can start. */
CASE(no_controller_is_enabled_beside_processes, tree)
{
    char text[64];
    write_text(tree->root, "cgroup.type", "domain\n");
    write_text(tree->root, "cgroup.procs", "4711\n");
    limits_enable_v2(tree->limits, tree->instance);
    assert_null(limits_how(tree->limits, LIMIT_DMEM));
    assert_int_equal(limits_why(tree->limits, LIMIT_DMEM)->code, -EBUSY);
    assert_true(limit_files_read(tree->root, "cgroup.subtree_control", text, sizeof(text)));
    assert_string_equal(text, "");
    write_text(tree->root, "cgroup.procs", "");
    limits_enable_v2(tree->limits, tree->instance);
    assert_string_equal(limits_how(tree->limits, LIMIT_DMEM), "cgroup v2");
}

CASE(the_limit_of_a_region_is_exact, tree)
{
    char text[128];
    struct error err = { 0 };
    limits_enable_v2(tree->limits, tree->instance);
    assert_int_equal(limits_apply(tree->limits, &id, tree->attempt, &tree->spec, &err), 0);
    assert_false(limit_files_read(tree->attempt, "dmem.max", text, sizeof(text)) && text[0] != '\0');
    strings_add(&tree->spec.dmem, REGION " 8589934592");
    assert_int_equal(limits_apply(tree->limits, &id, tree->attempt, &tree->spec, &err), 0);
    assert_true(limit_files_read(tree->attempt, "dmem.max", text, sizeof(text)));
    assert_string_equal(text, REGION " 8589934592");
}

CASE(a_limit_that_the_kernel_did_not_take_is_an_error, tree)
{
    struct error err = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/dmem.max", tree->attempt);
    limits_enable_v2(tree->limits, tree->instance);
    strings_add(&tree->spec.dmem, REGION " 8589934592");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(limits_apply(tree->limits, &id, tree->attempt, &tree->spec, &err), -ENOENT);
    write_text(tree->attempt, "dmem.max", REGION " 85899345920000\n"); // of which the write replaces a part
    assert_int_equal(limits_apply(tree->limits, &id, tree->attempt, &tree->spec, &err), -EIO);
    assert_non_null(strstr(err.message, "does not contain the limit"));
}
