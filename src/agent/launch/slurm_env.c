/* SPDX-License-Identifier: MIT */
/*
 * As in Slurm, some variables are set only if requested: SLURM_NTASKS_PER_NODE, SLURM_CPUS_PER_TASK and
 * SLURM_NTASKS. Lists of nodes and tasks use Slurm's short forms: "gpu[1-3]" and "2(x3),1".
 */
#include "agent/launch/slurm_env.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/hostlist.h"
#include "job/array.h"
#include "job/launch.h"
#include "job/slurm.h"

#define MILLI 1000

struct assignment {
    const struct message_launch *launch;
    const struct job_spec *job;
    const struct strings *notes;
    uint64_t nodes, tasks, cpus_per_task;
};

static void set_number(struct strings *env, const char *name, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    strings_set_env(env, name, text);
}

static uint64_t note_number(const struct assignment *it, const char *name, uint64_t otherwise)
{
    const char *text = slurm_note(it->notes, name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

/* If the number does not divide evenly, the first nodes have one more. */
static uint64_t tasks_on(const struct assignment *it, uint64_t node)
{
    return it->tasks / it->nodes + (node < it->tasks % it->nodes);
}

/* "2(x3),1": for each node, `per_task` for each of its tasks. */
static char *per_node(const struct assignment *it, uint64_t per_task)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    for (uint64_t i = 0, count = 0; i < it->nodes; i += count) {
        count = 1;
        while (i + count < it->nodes && tasks_on(it, i + count) == tasks_on(it, i))
            count++;
        buffer_printf(&out, "%s%" PRIu64, i > 0 ? "," : "", tasks_on(it, i) * per_task);
        if (count > 1)
            buffer_printf(&out, "(x%" PRIu64 ")", count);
    }
    return buffer_take(&out);
}

static void set_job(struct strings *env, const struct assignment *it, const char *job_name)
{
    const struct message_launch *launch = it->launch;
    set_number(env, "SLURM_JOB_ID", launch->id.job);
    set_number(env, "SLURM_JOBID", launch->id.job);
    strings_set_env(env, "SLURM_JOB_NAME", job_name);
    set_number(env, "SLURM_JOB_UID", launch->uid);
    set_number(env, "SLURM_JOB_GID", launch->gid);
    if (launch->user != NULL)
        strings_set_env(env, "SLURM_JOB_USER", launch->user);
    strings_set_env(env, "SLURM_CLUSTER_NAME", SLURM_CLUSTER);
    strings_set_env(env, "SLURM_WORKING_CLUSTER", SLURM_CLUSTER);
    strings_set_env(env, "SLURM_JOB_PARTITION",
        it->job->ask.partition != NULL ? it->job->ask.partition : SLURM_PARTITION);
    strings_set_env(env, "SLURM_JOB_ACCOUNT", "default");
    strings_set_env(env, "SLURM_JOB_QOS", "normal");
    strings_set_env(env, "SLURM_NODE_ALIASES", "(null)");
    set_number(env, "SLURM_JOB_START_TIME", (uint64_t)(clock_wall_ms() / MILLI));
    if (launch->id.attempt > 1)
        set_number(env, "SLURM_RESTART_COUNT", launch->id.attempt - 1);
    for (const struct slurm_variable *variable = slurm_variables; variable->name != NULL; variable++) {
        const char *value = slurm_note(it->notes, variable->note);
        if (value != NULL)
            strings_set_env(env, variable->name, value);
    }
}

static void set_array(struct strings *env, const struct message_launch *launch, const struct job_ask *ask)
{
    struct array array = { 0 };
    if (launch->array_job == 0)
        return;
    set_number(env, "SLURM_ARRAY_JOB_ID", launch->array_job);
    set_number(env, "SLURM_ARRAY_TASK_ID", launch->array_index);
    const char *indexes = slurm_note(&ask->slurm, SLURM_NOTE_ARRAY);
    if (indexes == NULL || parse_array(indexes, &array, NULL) < 0)
        return;
    set_number(env, "SLURM_ARRAY_TASK_COUNT", array_size(&array));
    set_number(env, "SLURM_ARRAY_TASK_MIN", array.ranges[0].first);
    set_number(env, "SLURM_ARRAY_TASK_MAX", array.ranges[array.count - 1].last);
    set_number(env, "SLURM_ARRAY_TASK_STEP", array.ranges[0].step > 0 ? array.ranges[0].step : 1);
    array_clear(&array);
}

static void set_nodes(struct strings *env, const struct assignment *it, const char *node)
{
    const struct message_launch *launch = it->launch;
    const struct launch_peer *peers = launch->peers.items;
    _cleanup_strings_ struct strings names = { 0 };
    for (size_t i = 0; i < launch->peers.count; i++)
        strings_add(&names, peers[i].name);
    if (names.count == 0)
        strings_add(&names, node);
    _cleanup_free_ char *list = hostlist_compress(&names);
    _cleanup_free_ char *tasks = per_node(it, 1);
    _cleanup_free_ char *cpus = per_node(it, it->cpus_per_task);
    strings_set_env(env, "SLURM_JOB_NODELIST", list);
    strings_set_env(env, "SLURM_NODELIST", list);
    set_number(env, "SLURM_JOB_NUM_NODES", it->nodes);
    set_number(env, "SLURM_NNODES", it->nodes);
    set_number(env, "SLURM_JOB_NODES", it->nodes);
    strings_set_env(env, "SLURM_TASKS_PER_NODE", tasks);
    strings_set_env(env, "SLURM_JOB_CPUS_PER_NODE", cpus);
    strings_set_env(env, "SLURMD_NODENAME", node);
    strings_set_env(env, "SLURM_TOPOLOGY_ADDR", node);
    strings_set_env(env, "SLURM_TOPOLOGY_ADDR_PATTERN", "node");
    strings_set_env(env, "SLURM_LAUNCH_NODE_IPADDR",
        launch->id.rank < launch->peers.count ? peers[launch->id.rank].address : "127.0.0.1");
    set_number(env, "SLURM_NODEID", launch->id.rank);
    set_number(env, "SLURM_CPUS_ON_NODE", tasks_on(it, launch->id.rank) * it->cpus_per_task);
    if (it->job->ask.memory > 0 && slurm_note(it->notes, SLURM_NOTE_MEM_PER_CPU) == NULL)
        set_number(env, "SLURM_MEM_PER_NODE", it->job->ask.memory >> 20);
}

/* The numbers of the GPUs on the node, and their numbers as seen by the job. */
static void set_gpus(struct strings *env, const struct message_launch *launch)
{
    _cleanup_buffer_ struct buffer here = { 0 }, seen = { 0 };
    const struct gpu_grant *gpus = launch->gpus.items;
    for (size_t i = 0; i < launch->gpus.count; i++) {
        buffer_printf(&here, "%s%u", i > 0 ? "," : "", gpus[i].index);
        buffer_printf(&seen, "%s%zu", i > 0 ? "," : "", i);
    }
    if (launch->gpus.count == 0)
        return;
    strings_set_env(env, "SLURM_JOB_GPUS", buffer_text(&here));
    strings_set_env(env, "GPU_DEVICE_ORDINAL", buffer_text(&seen));
    set_number(env, "SLURM_GPUS_ON_NODE", launch->gpus.count);
}

static void set_umask(struct strings *env, uint32_t mask)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%04o", mask & 0777);
    strings_set_env(env, "SLURM_UMASK", text);
}

void slurm_env_set(struct strings *env, const struct message_launch *launch, const struct job_spec *job,
    const char *job_name, const char *node)
{
    struct assignment it = { .launch = launch, .job = job, .notes = &job->ask.slurm };
    if (it.notes->count == 0)
        return;
    it.nodes = launch->peers.count > 0 ? launch->peers.count : 1;
    it.tasks = note_number(&it, SLURM_NOTE_TASKS, it.nodes);
    it.cpus_per_task = note_number(&it, SLURM_NOTE_CPUS_PER_TASK, 1);
    set_job(env, &it, job_name);
    set_array(env, launch, &job->ask);
    set_nodes(env, &it, node);
    set_gpus(env, launch);
    /* The job's own command is the first process of its node. */
    set_number(env, "SLURM_PROCID", launch->id.rank);
    strings_set_env(env, "SLURM_LOCALID", "0");
    set_number(env, "SLURM_GTIDS", launch->id.rank);
    strings_set_env(env, "ENVIRONMENT", "BATCH");
    set_umask(env, job->umask);
    strings_set_env(env, SLURM_TASK_PID, SLURM_TASK_PID_ROOM);
}
