/* SPDX-License-Identifier: MIT */
/* A lease of the node ends a step on the shepherd's own clock. */

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "fixture.h"
#include "job/state.h"
#include "shepherd/shepherd.h"
#include "unit_test.h"

#define CASE(name, f) TEST_ON(name, struct fixture *f, fixture_setup, fixture_teardown)

#define LEASE_MS 1500

static void lease_for(struct fixture *f, int64_t ms)
{
    f->spec.lease_ms = LEASE_MS;
    f->spec.lease_until_ms = clock_boot_ms() + ms;
    f->spec.grace_ms = 30000;
}

static void renew(const struct fixture *f, int64_t ms)
{
    _cleanup_close_ int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(spool_renew(fd, clock_boot_ms() + ms), 0);
}

CASE(a_step_ends_when_its_lease_does, f)
{
    fixture_command(f, "sleep", "98801", NULL);
    lease_for(f, LEASE_MS);
    fixture_run(f);
    assert_int_equal(f->exit.end, END_NODE_LOST);
    assert_int_equal(f->exit.exit_code, 128 + SIGTERM);
    assert_string_equal(f->exit.text, "its node had no contact to mgpud for longer than its lease of 1 s");
}

CASE(a_step_that_ignores_the_signal_is_gone_when_the_lease_ends, f)
{
    fixture_script(f, "trap '' TERM; while :; do sleep 98802; done");
    lease_for(f, LEASE_MS);
    fixture_run(f);
    assert_int_equal(f->exit.end, END_NODE_LOST);
    assert_int_equal(f->exit.exit_code, 128 + SIGKILL);
    assert_int_equal(fixture_count_sleepers(f, "98802"), 0);
}

CASE(a_renewed_lease_lets_it_go_on, f)
{
    fixture_script(f, "echo ready; sleep 2; exit 5");
    lease_for(f, LEASE_MS);
    fixture_start(f);
    fixture_await_output(f, "ready");
    renew(f, 60000);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_EXIT);
    assert_int_equal(f->exit.exit_code, 5);
}

CASE(who_adopts_keeps_the_lease_too, f)
{
    fixture_script(f, "echo ready; sleep 98803");
    lease_for(f, LEASE_MS);
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_kill_shepherd(f);
    fixture_adopt(f);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_NODE_LOST);
}

CASE(an_attempt_that_comes_too_late_never_starts, f)
{
    fixture_script(f, "echo ran");
    lease_for(f, -1);
    fixture_start(f);
    assert_int_equal(fixture_wait(f), SHEPHERD_SETTLED);
    _cleanup_close_ int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(spool_verdict(fd), VERDICT_NOGO);
}
