/* SPDX-License-Identifier: MIT */
/* Which cgroup is chosen, in a tree of ordinary files; tests/vm has the kernel's. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/confine/place.h"
#include "base/files.h"
#include "base/memory.h"
#include "unit_test.h"

#define LIMITS "cpuset cpu io memory pids\n"

static char mount[] = "/tmp/mgpu-place.XXXXXX";

static void put(const char *cgroup, const char *file, const char *text)
{
    _cleanup_free_ char *path = xasprintf("%s%s/%s", mount, cgroup, file);
    assert_int_equal(file_write(AT_FDCWD, path, text, strlen(text), false), 0);
}

/* NULL for `processes`: the root, which has no type and may have any. */
static void make(const char *cgroup, const char *controllers, const char *processes)
{
    _cleanup_free_ char *dir = xasprintf("%s%s", mount, cgroup);
    (void)mkdir(dir, 0700);
    put(cgroup, "cgroup.controllers", controllers);
    put(cgroup, "cgroup.procs", processes != NULL ? processes : "1\n");
    if (processes != NULL)
        put(cgroup, "cgroup.type", "domain\n");
}

static int setup(void **state)
{
    (void)strcpy(mount, "/tmp/mgpu-place.XXXXXX");
    assert_non_null(mkdtemp(mount));
    return 0;
}

static int teardown(void **state)
{
    _cleanup_free_ char *command = xasprintf("rm -rf '%s'", mount);
    return system(command);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

static void expect_place(
    const char *own, const char *first, bool is_root, bool is_systemd, const char *wanted)
{
    _cleanup_(place_facts_clear) struct place_facts facts = {
        .mount = mount, .is_root = is_root, .is_systemd = is_systemd
    };
    facts.own = own == NULL ? NULL : xstrdup(own);
    facts.first = first == NULL ? NULL : xstrdup(first);
    _cleanup_free_ char *place = place_choose(&facts);
    if (wanted == NULL)
        assert_null(place);
    else
        assert_string_equal(place, wanted);
}

CASE(root_beside_its_shell_goes_to_the_top)
{
    make("", LIMITS, NULL);
    make("/shell", LIMITS, "77\n78\n");
    make("/init", LIMITS, "1\n");
    expect_place("/shell", "/", true, false, "/");
    expect_place("/shell", "/init", true, false, "/");
}

CASE(nobody_else_does)
{
    make("", LIMITS, NULL);
    make("/shell", LIMITS, "77\n78\n");
    expect_place("/shell", "/init", false, false, "/shell");
    expect_place("/shell", "/init", true, true, "/shell");
    expect_place("/shell", NULL, true, false, "/shell");
    expect_place(NULL, "/", true, false, NULL);
}

CASE(a_place_without_processes_is_kept)
{
    make("", LIMITS, NULL);
    make("/delegated", LIMITS, "");
    expect_place("/delegated", "/init", true, false, "/delegated");
    expect_place("/", "/", true, false, "/");
}

CASE(without_controllers_there_is_no_reason_to_move)
{
    make("", "hugetlb\n", NULL);
    make("/shell", "hugetlb\n", "77\n");
    expect_place("/shell", "/init", true, false, "/shell");
}

CASE(a_job_is_not_left)
{
    make("", LIMITS, NULL);
    make("/mgpu.0123", LIMITS, "77\n");
    expect_place("/mgpu.0123", "/init", true, false, "/mgpu.0123");
}

CASE(a_container_is_not_left)
{
    make("", LIMITS, NULL);
    make("/docker", LIMITS, "");
    make("/docker/abc", LIMITS, "77\n");
    expect_place("/docker/abc", "/docker", true, false, "/docker");
}

CASE(a_scope_of_ours_is_the_place_also_from_below)
{
    make("", LIMITS, NULL);
    make("/user.slice", LIMITS, "");
    make("/user.slice/mgpu-agent-77.scope", LIMITS, "");
    make("/user.slice/mgpu-agent-77.scope/holder", LIMITS, "77\n");
    for (int is_root = 0; is_root < 2; is_root++)
        expect_place("/user.slice/mgpu-agent-77.scope/holder", "/init.scope", is_root != 0, true,
            "/user.slice/mgpu-agent-77.scope");
    make("/user.slice/session-1.scope", LIMITS, "77\n");
    expect_place("/user.slice/session-1.scope", "/init.scope", true, true, "/user.slice/session-1.scope");
}

CASE(a_place_that_cannot_be_cleared_is_not_taken)
{
    make("", LIMITS, "1\n"); // of a cgroup namespace: not the true root
    make("/shell", LIMITS, "77\n");
    expect_place("/shell", "/init", true, false, "/shell");
}
