/* SPDX-License-Identifier: MIT */
/* Leases on a real process of ours, in a spool entry of their own. */

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/process_facts.h"
#include "agent/launch/adopted.h"
#include "agent/launch/adopted_kill.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/spool.h"
#include "unit_test.h"

static char place[64];
static int dirfd_of_entry = -1;
static pid_t child;

static int setup(void **state)
{
    (void)snprintf(place, sizeof(place), "/tmp/mgpu-adopt-XXXXXX");
    assert_non_null(mkdtemp(place));
    _cleanup_free_ char *entry = xasprintf("%s/1.1.0.0", place);
    assert_int_equal(mkdir(entry, 0700), 0);
    dirfd_of_entry = open(entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    child = fork();
    if (child == 0)
        for (;;)
            (void)pause();
    return child > 0 && dirfd_of_entry >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
    _cleanup_close_ int parent = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    closep(&dirfd_of_entry);
    assert_int_equal(spool_remove(parent, "1.1.0.0"), 0);
    return rmdir(place);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

static void stage(uint32_t uid, uint64_t start)
{
    struct gpu_grant grant = { .index = 3 };
    struct job_spec spec = { .ask = { .adopted_pid = (uint32_t)child, .adopted_start = start } };
    struct message_launch launch = {
        .id.job = 1, .id.attempt = 1, .token = 99, .uid = uid, .gpus = { &grant, 1 }
    };
    assert_int_equal(adopted_stage(dirfd_of_entry, &launch, &spec), 0);
}

static struct launch_exit read_exit(void)
{
    struct launch_exit record;
    struct error err = { 0 };
    assert_int_equal(file_read_record(dirfd_of_entry, SPOOL_EXIT, &launch_exit_record, &record, &err), 0);
    return record;
}

/* Waits for its end without reaping it. */
static void end_child(void)
{
    siginfo_t end;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT), 0);
}

CASE(adoption_lasts_as_long_as_its_process)
{
    struct launch_started started;
    assert_false(adopted_is(dirfd_of_entry));
    stage(getuid(), process_start_time(child));
    assert_true(adopted_is(dirfd_of_entry));
    assert_int_equal(adopted_begin(dirfd_of_entry, NULL), 1);
    assert_int_equal(spool_verdict(dirfd_of_entry), VERDICT_GO);
    assert_int_equal(
        file_read_record(dirfd_of_entry, SPOOL_STARTED, &launch_started_record, &started, NULL), 0);
    assert_int_equal(started.init_pid, child);
    assert_true(started.token == 99);
    assert_true(adopted_is_alive(dirfd_of_entry));
    end_child();
    assert_false(adopted_is_alive(dirfd_of_entry));
    assert_int_equal(adopted_end(dirfd_of_entry, END_RELEASED, NULL), 1);
    assert_int_equal(adopted_end(dirfd_of_entry, END_CANCELLED, NULL), 1); // too late: the first one stands
    struct launch_exit record = read_exit();
    assert_int_equal(record.end, END_RELEASED);
    assert_true(record.started_wall_ms == started.wall_ms && record.token == 99);
    record_clear(&launch_exit_record, &record);
}

CASE(a_process_of_another_user_is_not_begun)
{
    stage(getuid() + 1, process_start_time(child));
    assert_int_equal(adopted_begin(dirfd_of_entry, NULL), 1);
    struct launch_exit record = read_exit();
    assert_int_equal(record.end, END_START_FAILED);
    assert_int_equal(spool_verdict(dirfd_of_entry), VERDICT_GO);
    record_clear(&launch_exit_record, &record);
}

CASE(another_process_of_that_number_is_not_begun)
{
    stage(getuid(), process_start_time(child) + 1);
    assert_int_equal(adopted_begin(dirfd_of_entry, NULL), 1);
    struct launch_exit record = read_exit();
    assert_int_equal(record.end, END_RELEASED);
    assert_int_equal(faccessat(dirfd_of_entry, SPOOL_STARTED, F_OK, 0), -1);
    record_clear(&launch_exit_record, &record);
}

CASE(released_adoption_leaves_its_process_running)
{
    stage(getuid(), process_start_time(child));
    assert_int_equal(adopted_begin(dirfd_of_entry, NULL), 1);
    assert_int_equal(adopted_end(dirfd_of_entry, END_CANCELLED, NULL), 1);
    struct launch_exit record = read_exit();
    assert_int_equal(record.end, END_CANCELLED);
    assert_non_null(strstr(record.text, "left running"));
    assert_true(adopted_is_alive(dirfd_of_entry));
    record_clear(&launch_exit_record, &record);
}

CASE(a_process_is_ended_only_when_that_is_asked_for)
{
    int status = 0;
    struct event_base *base = event_base_new();
    struct adopted_kills *kills = adopted_kills_new(base);
    stage(getuid(), process_start_time(child));
    assert_int_equal(adopted_begin(dirfd_of_entry, NULL), 1);
    assert_int_equal(adopted_kills_start(kills, dirfd_of_entry, SIGSTOP, 20), 0);
    assert_int_equal(event_base_dispatch(base), 1); // nothing is left to wait for: SIGKILL was sent
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(adopted_kills_start(kills, dirfd_of_entry, SIGTERM, 20), 0); // it is over: nothing to do
    adopted_kills_free(kills);
    event_base_free(base);
}

/* It ran a program that belongs to somebody else, and neither its owner nor a controller may end that. */
CASE(a_process_that_is_another_users_by_now_is_not_signalled)
{
    int status = 0;
    struct event_base *base = event_base_new();
    struct adopted_kills *kills = adopted_kills_new(base);
    stage(getuid() + 1, process_start_time(child));
    assert_int_equal(adopted_kills_start(kills, dirfd_of_entry, SIGKILL, 20), -EPERM);
    assert_int_equal(waitpid(child, &status, WNOHANG), 0);
    adopted_kills_free(kills);
    event_base_free(base);
}

CASE(the_facts_of_a_process_are_its_own)
{
    struct process_facts facts;
    struct error err = { 0 };
    assert_int_equal(process_facts_read(child, 0, &facts, &err), 0);
    assert_true(facts.uid == getuid() && facts.gid == getgid());
    assert_true(facts.start == process_start_time(child));
    assert_non_null(strstr(facts.command.items[0], "agent_adopted"));
    process_facts_clear(&facts);
    assert_true(process_facts_is_below(child, getpid()));
    assert_false(process_facts_is_below(getpid(), child));
    assert_int_equal(process_facts_read(child, 1, &facts, &err), -ESRCH);
    assert_non_null(strstr(err.message, "belongs to another process"));
    assert_int_equal(process_facts_read(0x3fffff, 0, &facts, &err), -ESRCH);
    assert_int_equal(process_facts_read(-5, 0, &facts, &err), -ESRCH);
}
