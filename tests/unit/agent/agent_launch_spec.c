/* SPDX-License-Identifier: MIT */
#include <signal.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/launch_spec.h"
#include "base/memory.h"
#include "job/inherited.h"
#include "job/spec.h"
#include "unit_test.h"

struct request {
    struct message_launch launch;
    struct job_spec job;
    struct user user;
    struct launch_node node;
    gid_t groups[2];
    struct launch_spec spec;
};

static int setup(void **state)
{
    struct request *request = xcalloc(1, sizeof(*request));
    job_spec_init(&request->job);
    strings_add(&request->job.command, "/usr/bin/python3");
    request->job.cwd = xstrdup("/data/run");
    request->groups[0] = 50;
    request->groups[1] = 1001;
    request->launch =
        (struct message_launch){ .id.job = 42, .id.attempt = 1, .token = 9, .uid = 1001, .gid = 50 };
    gpu_grants_add(&request->launch.gpus, 2, "GPU-b", 0, 0);
    gpu_grants_add(&request->launch.gpus, 0, "GPU-a", 0, 0);
    request->user = (struct user){ .uid = 1001,
        .gid = 1001,
        .name = xstrdup("ada"),
        .groups = request->groups,
        .n_groups = 2,
        .home = xstrdup("/home/ada"),
        .shell = xstrdup("/usr/bin/fish") };
    request->node = (struct launch_node){ .name = "box",
        .run_dir = "/run/mgpu",
        .state_dir = "/var/lib/mgpu",
        .log_dir = "home",
        .exit_dir = "/var/lib/mgpu/exits",
        .script_dir = "/run/mgpu/scripts/42.1.0.0",
        .is_root = true };
    *state = request;
    return 0;
}

static int teardown(void **state)
{
    struct request *request = *state;
    gpu_grants_clear(&request->launch.gpus);
    job_spec_clear(&request->job);
    record_clear(&launch_spec_record, &request->spec);
    free(request->user.name);
    free(request->user.home);
    free(request->user.shell);
    free(request);
    return 0;
}

#define CASE(name, request) TEST_ON(name, struct request *request, setup, teardown)

static void make(struct request *request)
{
    struct error err = { 0 };
    if (launch_spec_make(
            &request->launch, &request->job, &request->user, &request->node, &request->spec, &err) < 0)
        fail_msg("%s", err.message);
}

/* Settings that its shepherd obeys need no row here. */
CASE(the_request_is_handed_on_whole, request)
{
    request->job.ask.idle_timeout_ms = 5000;
    make(request);
    assert_true(job_ask_equal(launch_ask(&request->spec), &request->job.ask));
}

CASE(a_script_is_run_from_its_copy, request)
{
    strings_clear(&request->job.command);
    strings_add(&request->job.command, "/home/ada/a b.sh");
    strings_add(&request->job.command, "word");
    request->job.script = xstrdup("#!/bin/bash -e\ntrue\n");
    make(request);
    assert_string_equal(request->spec.script, "/run/mgpu/scripts/42.1.0.0/a b.sh");
    assert_int_equal(request->spec.command.count, 4);
    assert_string_equal(request->spec.command.items[0], "/bin/bash");
    assert_string_equal(request->spec.command.items[1], "-e");
    assert_string_equal(request->spec.command.items[2], "/run/mgpu/scripts/42.1.0.0/a b.sh");
    assert_string_equal(request->spec.command.items[3], "word");
    assert_string_equal(strings_get_env(&request->spec.gpu_env, "MGPU_SCRIPT"), "/home/ada/a b.sh");
    assert_null(strings_get_env(&request->spec.env, "PYTHONPATH"));
}

CASE(a_script_whose_name_cannot_be_that_of_a_file_gets_another, request)
{
    static const char *const paths[] = { "/home/ada/..", "/home/ada/", "..", ".hidden" };
    request->job.script = xstrdup("true");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        strings_clear(&request->job.command);
        strings_add(&request->job.command, paths[i]);
        record_clear(&launch_spec_record, &request->spec);
        make(request);
        assert_string_equal(request->spec.script, "/run/mgpu/scripts/42.1.0.0/script");
        assert_string_equal(request->spec.command.items[0], "/bin/sh");
    }
}

CASE(the_assignment_names_the_gpus_in_the_order_asked, request)
{
    make(request);
    const struct strings *env = &request->spec.gpu_env;
    assert_string_equal(strings_get_env(env, "CUDA_VISIBLE_DEVICES"), "2,0");
    assert_string_equal(strings_get_env(env, "CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
    assert_string_equal(strings_get_env(env, "MGPU_GPUS"), "2,0");
    assert_string_equal(strings_get_env(env, "MGPU_NUM_GPUS"), "2");
    assert_string_equal(strings_get_env(env, "MGPU_JOB_ID"), "42");
    assert_string_equal(strings_get_env(env, "MGPU_JOB_NAME"), "python3");
    assert_string_equal(strings_get_env(env, "MGPU_ATTEMPT"), "1");
    assert_string_equal(strings_get_env(env, "MGPU_STEP"), "0");
    assert_string_equal(strings_get_env(env, "MGPU_NODE"), "box");
    assert_string_equal(strings_get_env(env, "MGPU_SOCKET"), "/run/mgpu/mgpud.sock");
    assert_string_equal(strings_get_env(env, "MGPU_NOTIFY"), "/run/mgpu/notify/42.1.0.0");
    assert_string_equal(request->spec.say_pipe, "/run/mgpu/notify/42.1.0.0");
    const struct gpu_grant *grants = request->spec.gpus.items;
    assert_int_equal(request->spec.gpus.count, 2);
    assert_string_equal(grants[0].uuid, "GPU-b");
}

CASE(it_says_what_the_step_may_use, request)
{
    request->job.ask.memory = 2ULL << 30;
    request->job.ask.cpu_milli = 2500;
    request->node.pids_max = 300;
    make(request);
    assert_int_equal(request->spec.memory_limit, 2ULL << 30);
    assert_int_equal(request->spec.cpu_milli, 2500);
    assert_int_equal(request->spec.pids_max, 300);
}

CASE(a_job_that_saves_its_work_gets_its_own_signal, request)
{
    char usr1[] = "USR1@30";
    request->job.ask.requeue_on_timeout = true;
    make(request);
    assert_int_equal(request->spec.checkpoint_signal, 0);
    assert_false(request->spec.is_requeued_at_limit);
    record_clear(&launch_spec_record, &request->spec);
    request->job.ask.checkpoint = true;
    make(request);
    assert_int_equal(request->spec.checkpoint_signal, SIGTERM);
    assert_true(request->spec.is_requeued_at_limit);
    record_clear(&launch_spec_record, &request->spec);
    request->job.ask.warn_signal = usr1;
    make(request);
    assert_int_equal(request->spec.checkpoint_signal, SIGUSR1);
    request->job.ask.warn_signal = NULL;
}

CASE(no_gpus_means_none_and_not_all, request)
{
    gpu_grants_clear(&request->launch.gpus);
    make(request);
    assert_string_equal(strings_get_env(&request->spec.gpu_env, "CUDA_VISIBLE_DEVICES"), "");
}

CASE(missing_variables_are_completed_and_given_ones_kept, request)
{
    strings_set_env(&request->job.env, "HOME", "/elsewhere");
    make(request);
    const struct strings *env = &request->spec.env;
    assert_string_equal(strings_get_env(env, "HOME"), "/elsewhere");
    assert_string_equal(strings_get_env(env, "USER"), "ada");
    assert_string_equal(strings_get_env(env, "LOGNAME"), "ada");
    assert_string_equal(strings_get_env(env, "SHELL"), "/usr/bin/fish");
    assert_string_equal(strings_get_env(env, "PWD"), "/data/run");
    assert_non_null(strings_get_env(env, "PATH"));
}

CASE(the_log_is_in_the_users_home_with_a_fallback, request)
{
    make(request);
    assert_true(request->spec.is_output_default);
    assert_string_equal(request->spec.output, "/home/ada/.local/state/mgpu/logs/42.log");
    assert_string_equal(request->spec.output_fallback, "/var/lib/mgpu/logs/1001/42.log");
}

CASE(a_later_attempt_has_a_log_of_its_own, request)
{
    request->launch.id.attempt = 3;
    request->node.log_dir = "/logs";
    make(request);
    assert_string_equal(request->spec.output, "/logs/1001/42.3.log");
    assert_null(request->spec.output_fallback);
}

CASE(a_rootless_instance_needs_no_directory_for_each_user, request)
{
    request->node.is_root = false;
    request->node.log_dir = "/home/ada/.local/state/mgpu/logs";
    make(request);
    assert_string_equal(request->spec.output, "/home/ada/.local/state/mgpu/logs/42.log");
}

CASE(placeholders_are_replaced_and_names_are_no_paths, request)
{
    char *path = launch_expand_path("out/%j.%a-%n@%h%%%x%", &request->launch, "../etc/x", "box");
    assert_string_equal(path, "out/42.1-.._etc_x@box%%x%");
    free(path);
    request->job.output = xstrdup("%j.txt");
    make(request);
    assert_string_equal(request->spec.output, "42.txt");
    assert_false(request->spec.is_output_default);
    assert_null(request->spec.output_fallback);
}

CASE(an_element_of_an_array_has_its_index_and_the_number_of_the_array, request)
{
    _cleanup_free_ char *single = launch_expand_path("%A-%a", &request->launch, "x", "box");
    assert_string_equal(single, "42-1");
    request->launch.array_job = 40;
    request->launch.array_index = 7;
    _cleanup_free_ char *element = launch_expand_path("%A-%a-%j", &request->launch, "x", "box");
    assert_string_equal(element, "40-7-42");
}

CASE(a_group_that_is_not_the_users_is_not_given, request)
{
    make(request);
    assert_int_equal(request->spec.gid, 50);
    record_clear(&launch_spec_record, &request->spec);
    request->launch.gid = 0;
    make(request);
    assert_int_equal(request->spec.gid, 1001);
    assert_int_equal(request->spec.groups.count, 2);
}

CASE(a_setup_gets_a_shell_that_understands_it, request)
{
    request->job.setup = xstrdup("module load cuda");
    make(request);
    assert_true(strcmp(request->spec.shell, "/bin/bash") == 0 || strcmp(request->spec.shell, "/bin/sh") == 0);
    record_clear(&launch_spec_record, &request->spec);
    free(request->user.shell);
    request->user.shell = xstrdup("/usr/bin/zsh");
    make(request);
    assert_string_equal(request->spec.shell, "/usr/bin/zsh");
}

CASE(a_message_without_a_command_is_refused, request)
{
    struct error err = { 0 };
    strings_clear(&request->job.command);
    assert_int_equal(launch_spec_make(&request->launch, &request->job, &request->user, &request->node,
                         &request->spec, &err),
        -EINVAL);
    assert_string_equal(err.message, "the job has no command");
}

static void add_peers(struct request *request, struct launch_peer peers[2])
{
    static char first[] = "gpu1", second[] = "gpu2", address[] = "10.0.0.1", other[] = "10.0.0.2";
    peers[0] = (struct launch_peer){ .name = first, .address = address, .gpus = 2 };
    peers[1] = (struct launch_peer){ .name = second, .address = other, .gpus = 2 };
    request->launch.peers = (struct record_list){ peers, 2 };
    request->launch.port = 29511;
    request->launch.id.rank = 1;
}

CASE(an_ipv6_address_cannot_be_taken_for_one_with_its_number_of_gpus, request)
{
    static char address[] = "fd77::2";
    struct launch_peer peers[2];
    add_peers(request, peers);
    peers[1].address = address;
    make(request);
    assert_string_equal(strings_get_env(&request->spec.gpu_env, "MGPU_HOSTS"), "10.0.0.1:2,[fd77::2]:2");
}

CASE(rank_receives_the_nodes_of_the_others, request)
{
    struct launch_peer peers[2];
    add_peers(request, peers);
    make(request);
    const struct strings *env = &request->spec.gpu_env;
    assert_true(request->spec.is_gated);
    assert_string_equal(strings_get_env(env, "MASTER_ADDR"), "10.0.0.1");
    assert_string_equal(strings_get_env(env, "MASTER_PORT"), "29511");
    assert_string_equal(strings_get_env(env, "PET_NNODES"), "2");
    assert_string_equal(strings_get_env(env, "PET_NODE_RANK"), "1");
    assert_string_equal(strings_get_env(env, "PET_NPROC_PER_NODE"), "2");
    assert_string_equal(strings_get_env(env, "MGPU_NODELIST"), "gpu1,gpu2");
    assert_string_equal(strings_get_env(env, "MGPU_HOSTS"), "10.0.0.1:2,10.0.0.2:2");
    assert_string_equal(strings_get_env(env, "MGPU_HOSTFILE"), "/run/mgpu/hosts/42.1.0.1");
    assert_int_equal(request->spec.meeting_port, 0); // that of rank 0 decides
    assert_null(strings_get_env(env, "WORLD_SIZE")); // its launcher says how many processes there are
}

static const char *get_entry(const void *environment, const char *name)
{
    return strings_get_env(environment, name);
}

/* Of a job that has everything: nodes, an array, a script, options of Slurm. */
CASE(all_that_is_set_for_a_job_is_known_as_its_own, request)
{
    /* These mean the same in every job. */
    static const char *const general[] = { "CUDA_DEVICE_ORDER", "MGPU_SOCKET" };
    struct launch_peer peers[2];
    add_peers(request, peers);
    request->launch.array_job = 40;
    request->launch.array_index = 2;
    request->job.script = xstrdup("#!/bin/sh");
    strings_add(&request->job.ask.slurm, "kind=sbatch");
    strings_add(&request->job.ask.slurm, "ntasks=4");
    strings_add(&request->job.ask.slurm, "array=0-3");
    make(request);
    const struct strings *env = &request->spec.gpu_env;
    assert_non_null(strings_get_env(env, "SLURM_ARRAY_TASK_COUNT"));
    assert_non_null(strings_get_env(env, "MGPU_NNODES"));
    for (size_t i = 0; i < env->count; i++) {
        _cleanup_free_ char *name = xstrndup(env->items[i], strcspn(env->items[i], "="));
        bool is_general = strcmp(name, general[0]) == 0 || strcmp(name, general[1]) == 0;
        if (!is_general && !inherited_describes(name, env, get_entry))
            fail_msg("%s would reach a job submitted in this one: job/inherited.c", name);
    }
}

CASE(a_job_submitted_in_a_job_is_told_nothing_of_that, request)
{
    strings_set_env(&request->job.env, "MGPU_JOB_ID", "7");
    strings_set_env(&request->job.env, "MGPU_NNODES", "2");
    strings_set_env(&request->job.env, "PET_NNODES", "2");
    strings_set_env(&request->job.env, "MGPU_ARRAY_INDEX", "3");
    strings_set_env(&request->job.env, "SLURM_JOB_ID", "7");
    strings_set_env(&request->job.env, "MINE", "1");
    make(request);
    static const char *const names[] = { "MGPU_NNODES", "PET_NNODES", "MGPU_ARRAY_INDEX", "SLURM_JOB_ID" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_null(strings_get_env(&request->spec.env, names[i]));
    assert_string_equal(strings_get_env(&request->spec.env, "MINE"), "1");
    assert_string_equal(strings_get_env(&request->spec.gpu_env, "MGPU_JOB_ID"), "42");
}

CASE(rank_0_selects_the_port, request)
{
    struct launch_peer peers[2];
    add_peers(request, peers);
    request->launch.id.rank = 0;
    make(request);
    assert_int_equal(request->spec.meeting_port, 29511);
}

static const char *fallback(struct request *request, const char *cwd)
{
    free(request->job.cwd_fallback);
    request->job.cwd_fallback = xstrdup(cwd);
    record_clear(&launch_spec_record, &request->spec);
    make(request);
    return request->spec.cwd_fallback;
}

CASE(a_place_to_fall_back_to_becomes_a_directory_of_this_node, request)
{
    assert_null(fallback(request, NULL));
    assert_string_equal(fallback(request, "home"), "/home/ada");
    assert_string_equal(fallback(request, "tmp"), "/tmp");
    assert_string_equal(fallback(request, "/scratch"), "/scratch");
}

CASE(a_job_on_one_node_is_told_nothing_of_others, request)
{
    make(request);
    assert_false(request->spec.is_gated);
    assert_null(strings_get_env(&request->spec.gpu_env, "MASTER_ADDR"));
    assert_null(strings_get_env(&request->spec.gpu_env, "PET_NNODES"));
    assert_null(strings_get_env(&request->spec.gpu_env, "MGPU_HOSTFILE"));
    assert_int_equal(request->spec.meeting_port, 0);
}

CASE(ranks_write_separate_files, request)
{
    static const struct {
        const char *pattern, *path;
    } rows[] = {
        { "/data/out.log", "/data/out.log.1" },
        { "/data/%j.%r.log", "/data/42.1.log" },
        { "/data/%h.log", "/data/box.log" },
        { "/data/%%h.log", "/data/%h.log.1" },
        { "/dev/null", "/dev/null" },
    };
    struct launch_peer peers[2];
    add_peers(request, peers);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        free(request->job.output);
        request->job.output = xstrdup(rows[i].pattern);
        record_clear(&launch_spec_record, &request->spec);
        make(request);
        assert_string_equal(request->spec.output, rows[i].path);
    }
}
