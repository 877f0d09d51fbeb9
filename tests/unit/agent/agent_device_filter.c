/* SPDX-License-Identifier: MIT */
/* Filters on cgroups of the real kernel; needs root. */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/confine/confine.h"
#include "agent/confine/device_filter.h"
#include "base/memory.h"
#include "unit_test.h"

#define ANY LAUNCH_MINOR_MAX

static const struct device_rule rules[] = {
    { 195, 2, 2, 1 },
    { 195, 254, 255, 1 },
    { 195, 0, ANY, 0 },
    { 226, 0, ANY, 0 },
};
#define RULES (sizeof(rules) / sizeof(rules[0]))

static const struct spool_id id = { .job = 5, .attempt = 1 };

struct place {
    char dir[64];
    struct confine_state *cells;
    char *cell;
    int cell_fd;
    struct device_filters filters;
};

static int setup(void **state)
{
    struct place *place = xcalloc(1, sizeof(*place));
    int shepherd_fd;
    place->cell_fd = -1;
    (void)snprintf(place->dir, sizeof(place->dir), "/tmp/mgpu-devices.XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    *state = place;
    if (geteuid() != 0 || confine_cgroup2.open(place->dir, NULL, &place->cells, NULL) < 0)
        return 0;
    assert_int_equal(confine_cgroup2.prepare(place->cells, &id, &place->cell, &shepherd_fd, NULL), 0);
    place->cell_fd = open(place->cell, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return 0;
}

static int teardown(void **state)
{
    struct place *place = *state;
    static const char *const names[] = { "nvidia1", "nvidia2", "made", "cgroup" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", place->dir, names[i]);
        (void)unlink(path);
    }
    closep(&place->cell_fd);
    device_filters_clear(&place->filters);
    if (place->cells != NULL)
        (void)confine_cgroup2.remove(place->cells, &id);
    confine_cgroup2.close(place->cells);
    (void)rmdir(place->dir);
    free(place->cell);
    free(place);
    return 0;
}

#define CASE(name, place) TEST_ON(name, struct place *place, setup, teardown)

/* True where the kernel takes filters at all. */
static bool can_filter(const struct place *place)
{
    return place->cell_fd >= 0 && device_filter_probe(place->cell_fd, NULL) == 0;
}

static void make_node(const struct place *place, uint32_t n)
{
    _cleanup_free_ char *path = xasprintf("%s/nvidia%u", place->dir, n);
    assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(195, n)), 0);
}

/* The errno of opening nvidiaN, or with `is_made` of making such a node, by a process in the cell. */
static int try_in_cell(const struct place *place, uint32_t n, bool is_made)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", place->dir,
        is_made  ? "made"
        : n == 1 ? "nvidia1"
                 : "nvidia2");
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        int procs = openat(place->cell_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        if (write(procs, "0", 1) != 1)
            _exit(255);
        int r = is_made ? mknod(path, S_IFCHR | 0666, makedev(195, n)) : open(path, O_RDWR | O_CLOEXEC);
        _exit(r < 0 ? errno : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

CASE(the_kernel_obeys_the_rules, place)
{
    struct error err = { 0 };
    if (!can_filter(place))
        skip();
    make_node(place, 1);
    make_node(place, 2);
    int without = try_in_cell(place, 1, false);
    assert_int_not_equal(without, EPERM); // ENXIO where there is no driver
    if (device_filter_apply(&place->filters, place->cell_fd, rules, RULES, &err) != 1)
        fail_msg("%s", err.message);
    assert_int_equal(try_in_cell(place, 1, false), EPERM);
    assert_int_not_equal(try_in_cell(place, 2, false), EPERM);
    assert_int_equal(try_in_cell(place, 1, true), EPERM);
    assert_int_equal(try_in_cell(place, 2, true), 0);
}

CASE(a_filter_that_is_there_is_not_attached_again, place)
{
    struct error err = { 0 };
    if (!can_filter(place))
        skip();
    assert_int_equal(device_filter_apply(&place->filters, place->cell_fd, rules, RULES, &err), 1);
    assert_int_equal(device_filter_apply(&place->filters, place->cell_fd, rules, RULES, &err), 0);
    /* Another one is no substitute for it: both hold then. */
    assert_int_equal(device_filter_apply(&place->filters, place->cell_fd, rules + 2, 1, &err), 1);
    make_node(place, 2);
    assert_int_equal(try_in_cell(place, 2, false), EPERM);
}

static const struct kept_filter *find_kept(const struct device_filters *filters, size_t *ret_count)
{
    const struct kept_filter *kept = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < DEVICE_FILTERS_KEPT; i++)
        if (filters->slots[i] != NULL) {
            kept = filters->slots[i];
            ++*ret_count;
        }
    return kept;
}

CASE(a_program_is_loaded_once_and_holds_in_every_cell_that_gets_it, place)
{
    const struct spool_id other = { .job = 8, .attempt = 1 };
    struct error err = { 0 };
    int shepherd_fd;
    size_t count;
    if (!can_filter(place))
        skip();
    make_node(place, 1);
    assert_int_equal(device_filter_apply(&place->filters, place->cell_fd, rules, RULES, &err), 1);
    const struct kept_filter *kept = find_kept(&place->filters, &count);
    assert_int_equal(count, 1);
    _cleanup_free_ char *path = NULL;
    assert_int_equal(confine_cgroup2.prepare(place->cells, &other, &path, &shepherd_fd, &err), 0);
    closep(&place->cell_fd);
    place->cell_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_not_equal(try_in_cell(place, 1, false), EPERM);
    assert_int_equal(device_filter_apply(&place->filters, place->cell_fd, rules, RULES, &err), 1);
    assert_ptr_equal(find_kept(&place->filters, &count), kept);
    assert_int_equal(count, 1);
    assert_int_equal(try_in_cell(place, 1, false), EPERM);
    closep(&place->cell_fd);
    assert_int_equal(confine_cgroup2.remove(place->cells, &other), 0);
}

TEST(a_failure_is_reported)
{
    struct error err = { 0 };
    _cleanup_(device_filters_clear) struct device_filters filters = { 0 };
    _cleanup_close_ int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(device_filter_apply(&filters, fd, rules, RULES, &err) < 0);
    assert_non_null(strstr(err.message, "device filter"));
}
