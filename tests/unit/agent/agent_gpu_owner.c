/* SPDX-License-Identifier: MIT */
/* Against a procfs made of plain files. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gpu/owner.h"
#include "base/memory.h"
#include "unit_test.h"
#include "wire/message.h"

#define CELL "/sys/fs/cgroup/unified/init.scope/mgpu.0badcafe/j42.1/step0.0"

static char proc[64];
static struct gpu_owners *owners;

static void put(int pid, const char *file, const char *text, size_t length)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/%d", proc, pid);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof(path), "%s/%d/%s", proc, pid, file);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, length, out), length);
    assert_int_equal(fclose(out), 0);
}

static void put_process(int pid, int parent, unsigned long start, const char *cgroup)
{
    char text[512];
    (void)snprintf(text, sizeof(text), "%d (py ) thon) S %d 1 1 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 %lu 0 0", pid,
        parent, start);
    put(pid, "stat", text, strlen(text));
    put(pid, "status", "Name:\tx\nUid:\t1000\t1001\t1000\t1000\n", 33);
    put(pid, "cmdline", "python\0train.py\0--lr\0", 21);
    put(pid, "cgroup", cgroup, strlen(cgroup));
}

static int setup(void **state)
{
    (void)snprintf(proc, sizeof(proc), "/tmp/mgpu-owner-XXXXXX");
    assert_non_null(mkdtemp(proc));
    owners = gpu_owners_new(proc);
    return 0;
}

static int teardown(void **state)
{
    gpu_owners_free(owners);
    return unit_test_remove(proc);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

/* The process as in a report, valid until the next call. */
static const struct gpu_process *look(int pid, const struct gpu_claim *claim)
{
    static struct gpu_process process;
    record_clear(&gpu_process_record, &process);
    process = (struct gpu_process){ .pid = (uint32_t)pid, .kind = GPU_PROCESS_COMPUTE };
    struct gpu_state gpu = { .processes = { &process, 1 } };
    struct record_list gpus = { &gpu, 1 };
    gpu_owners_fill(owners, &gpus, claim, claim != NULL ? 1 : 0);
    return &process;
}

static char cell[] = CELL;
static const struct gpu_claim by_cgroup = { .job = 42, .attempt = 1, .cgroup = cell };
static const struct gpu_claim by_parent = { .job = 42, .attempt = 1, .init_pid = 50, .init_start = 500 };

CASE(a_process_says_who_it_is)
{
    put_process(7, 1, 700, "0::/user.slice\n");
    const struct gpu_process *process = look(7, NULL);
    assert_int_equal(process->start, 700);
    assert_int_equal(process->uid, 1000);
    assert_string_equal(process->command, "python train.py --lr");
    assert_null(process->container);
    assert_int_equal(process->job, 0);
}

CASE(a_process_without_a_command_line_has_its_name)
{
    put_process(7, 1, 700, "");
    put(7, "cmdline", "", 0);
    assert_string_equal(look(7, NULL)->command, "py ) thon");
}

CASE(a_command_line_cannot_speak_to_the_terminal_or_break_the_record)
{
    char noise[400];
    put_process(7, 1, 700, "");
    memset(noise, '\x1b', sizeof(noise));
    put(7, "cmdline", noise, sizeof(noise));
    const char *command = look(7, NULL)->command;
    assert_null(strchr(command, '\x1b'));
    assert_in_range(strlen(command), 1, 256);
}

CASE(a_process_that_has_gone_has_no_start)
{
    const struct gpu_process *process = look(8, &by_cgroup);
    assert_int_equal(process->start, 0);
    assert_null(process->command);
}

CASE(an_attempt_is_known_by_its_cgroup_in_any_hierarchy)
{
    put_process(7, 1, 700, "12:memory:/x\n0::/init.scope/mgpu.0badcafe/j42.1/step0.0\n");
    put_process(8, 1, 800, "5:devices:/mgpu.0badcafe/j42.1/step0.0/deeper\n0::/\n");
    put_process(9, 1, 900, "0::/mgpu.0badcafe/j42.10/step0.0\n");
    put_process(10, 1, 901, "0::/mgpu.deadbeef/j42.1/step0.0\n");
    assert_int_equal(look(7, &by_cgroup)->job, 42);
    assert_int_equal(look(8, &by_cgroup)->job, 42);
    assert_int_equal(look(9, &by_cgroup)->job, 0);
    assert_int_equal(look(10, &by_cgroup)->job, 0);
    put_process(11, 1, 902, "0::/docker/0123456789ab/mgpu.0badcafe/j42.1/step0.0\n");
    assert_int_equal(look(11, &by_cgroup)->job, 0);
}

CASE(without_cgroups_an_attempt_is_known_by_its_init)
{
    put_process(50, 1, 500, "");
    put_process(60, 50, 600, "");
    put_process(70, 60, 700, "");
    put_process(80, 1, 800, "");
    assert_int_equal(look(70, &by_parent)->job, 42);
    assert_int_equal(look(70, &by_parent)->attempt, 1);
    assert_int_equal(look(80, &by_parent)->job, 0);
}

CASE(adopted_process_belongs_to_its_job_only_while_the_job_runs)
{
    const struct gpu_claim waiting = { .job = 1, .init_pid = 50, .init_start = 500, .is_adopted = true };
    put_process(50, 1, 500, "0::/user.slice\n");
    put_process(60, 50, 600, "0::/user.slice\n");
    assert_int_equal(look(60, NULL)->job, 0);
    assert_int_equal(look(60, &waiting)->job, 1);
    assert_int_equal(gpu_owners_job_of(owners, 60, &waiting, 1), 1);
    assert_int_equal(look(60, NULL)->job, 0);
}

CASE(an_init_whose_pid_was_taken_over_claims_nothing)
{
    put_process(50, 1, 999, "");
    put_process(60, 50, 1000, "");
    assert_int_equal(look(60, &by_parent)->job, 0);
}

CASE(parents_that_form_a_ring_end_the_walk)
{
    put_process(60, 70, 600, "");
    put_process(70, 60, 700, "");
    assert_int_equal(look(70, &by_parent)->job, 0);
}

CASE(containers_are_named_by_their_short_id)
{
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    static const struct {
        const char *cgroup, *id;
    } rows[] = {
        { "0::/system.slice/docker-" ID ".scope\n", "0123456789ab" },
        { "4:cpu:/\n3:devices:/docker/" ID "\n", "0123456789ab" },
        { "0::/user.slice/libpod-" ID ".scope\n", "0123456789ab" },
        { "0::/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope\n", "0123456789ab" },
        { "0::/kubepods.slice/cri-containerd-" ID ".scope\n", "0123456789ab" },
        { "0::/kubepods/besteffort/pod1-2/" ID "\n", "0123456789ab" },
        { "0::/lxc.payload.box/init.scope\n", "box" },
        { "0::/user.slice/docker-is-no-id\n", NULL },
        { "0::/system.slice/docker.service\n", NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        put_process(100 + (int)i, 1, 1000, rows[i].cgroup);
        const char *container = look(100 + (int)i, NULL)->container;
        if (rows[i].id == NULL)
            assert_null(container);
        else
            assert_string_equal(container, rows[i].id);
    }
}

CASE(a_pid_that_was_taken_over_is_looked_up_again)
{
    put_process(7, 1, 700, "0::/init.scope/mgpu.0badcafe/j42.1/step0.0\n");
    assert_int_equal(look(7, &by_cgroup)->job, 42);
    put_process(7, 1, 701, "0::/\n");
    const struct gpu_process *process = look(7, &by_cgroup);
    assert_int_equal(process->start, 701);
    assert_int_equal(process->job, 0);
}

CASE(a_process_seen_before_its_attempt_was_known_is_found_later)
{
    put_process(7, 1, 700, "0::/mgpu.0badcafe/j42.1/step0.0\n");
    assert_int_equal(look(7, NULL)->job, 0);
    assert_int_equal(look(7, &by_cgroup)->job, 42);
}

CASE(what_an_ended_attempt_left_is_still_its_own)
{
    put_process(7, 1, 700, "0::/mgpu.0badcafe/j42.1/step0.0\n");
    assert_int_equal(look(7, &by_cgroup)->job, 42);
    assert_int_equal(look(7, NULL)->job, 42);
}
