/* SPDX-License-Identifier: MIT */
/* scontrol show: steps, the configuration, lists of hosts; jobs, nodes and partitions have files of their
 * own. */
#include "compat/slurm/control/scontrol_show.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/submit/slurm_moment.h"
#include "compat/slurm/control/scontrol_hostlist.h"
#include "compat/slurm/control/scontrol_update.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/nodes.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/steps.h"

void scontrol_count_print(size_t count, const struct scontrol_form *form)
{
    _cleanup_free_ char *now = slurm_time_text(clock_wall_ms(), "");
    if (form->is_verbose)
        (void)printf("last_update_time=%s, records=%zu\n", now, count);
}

void scontrol_pairs_print(
    const struct scontrol_pair *pairs, const json_t *thing, const struct scontrol_form *form)
{
    int64_t now_ms = clock_wall_ms();
    bool is_due = false; // the new line of an omitted pair
    for (const struct scontrol_pair *pair = pairs; pair->key != NULL; pair++) {
        _cleanup_free_ char *text = pair->text != NULL       ? pair->text(thing, now_ms)
                                    : pair->constant != NULL ? xstrdup(pair->constant)
                                                             : NULL;
        is_due |= pair->is_new_line;
        if (text == NULL || (pair->is_detail && !form->has_details))
            continue;
        for (char *p = text; form->is_one_line && *p != '\0'; p++)
            *p = *p == '\n' ? ' ' : *p;
        if (pair != pairs)
            (void)fputs(is_due && !form->is_one_line ? "\n   " : " ", stdout);
        (void)printf("%s%s%s", pair->key, pair->key[0] != '\0' ? "=" : "", text);
        is_due = false;
    }
    (void)fputs(form->is_one_line ? "\n" : "\n\n", stdout);
}

/* --- steps --- */

static const struct scontrol_pair step_pairs[] = { { false, "StepId", slurm_text_job_id, NULL },
    { false, "UserId", slurm_text_uid, NULL }, { false, "StartTime", slurm_text_started, NULL },
    { false, "TimeLimit", slurm_text_limit, NULL }, { true, "State", slurm_text_state, NULL },
    { false, "Partition", slurm_text_partition, NULL }, { false, "NodeList", slurm_text_nodes, NULL },
    { true, "Nodes", slurm_text_node_count, NULL }, { false, "CPUs", slurm_text_cpus, NULL },
    { false, "Tasks", slurm_text_step_tasks, NULL }, { false, "Name", slurm_text_name, NULL },
    { false, "Network", slurm_text_null, NULL }, { true, "TRES", slurm_text_tres_by_number, NULL },
    { true, "ResvPorts", slurm_text_null, NULL }, { true, "CPUFreqReq", NULL, "Default" },
    { false, "Dist", NULL, "Block" }, { 0 } };

/* The running steps of these jobs, or of all. */
/* The running steps of the jobs that are listed. */
static int load_steps(
    struct client *client, const struct slurm_ids *ids, const json_t *jobs, json_t **ret, struct error *err)
{
    json_t *all = json_array(), *job = NULL;
    size_t index = 0;
    int r = 0;
    json_array_foreach(jobs, index, job)
    {
        _cleanup_json_ json_t *steps = NULL;
        size_t place = 0;
        json_t *step = NULL;
        if (r == 0)
            r = slurm_steps_get(client, job, true, &steps, err);
        json_array_foreach(steps, place, step)
        {
            bool is_listed = ids->count == 0;
            for (size_t i = 0; i < ids->count; i++)
                is_listed |= slurm_id_fits_step(&ids->items[i], step);
            if (is_listed)
                (void)json_array_append(all, step);
        }
    }
    *ret = all;
    return r;
}

static int show_steps(
    struct client *client, const char *name, const struct scontrol_form *form, struct error *err)
{
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    _cleanup_json_ json_t *jobs = NULL, *steps = NULL;
    size_t index = 0;
    json_t *step = NULL;
    const struct slurm_query query = { .ids = &ids, .is_quick = true, .has_open_alone = true };
    int r = name != NULL ? slurm_ids_parse(name, &ids, err) : 0;
    if (r == 0)
        r = slurm_jobs_get(client, &query, &jobs, err);
    if (r == 0)
        r = load_steps(client, &ids, jobs, &steps, err);
    if (r < 0)
        return r;
    if (json_array_size(steps) == 0 && name != NULL) {
        (void)fprintf(stderr, "slurm_get_job_steps error: Invalid job id specified\n");
        return 1;
    }
    scontrol_count_print(json_array_size(steps), form);
    if (json_array_size(steps) == 0)
        (void)puts("No job steps in the system");
    json_array_foreach(steps, index, step) scontrol_pairs_print(step_pairs, step, form);
    return 0;
}

/* --- the configuration ---
 *
 * The keys of slurm.conf that Slurm 22.05 shows, in its order, with the values that are true here; (null) is
 * Slurm's word for a value that is not set. Clients read some of them to learn what the cluster can do, and
 * take a key that is missing for a feature that is. */

#define NOTHING "(null)"

struct setting {
    const char *key, *value; // value NULL: the name of this host
};

static const struct setting settings[] = {
    { "AccountingStorageBackupHost", NOTHING },
    { "AccountingStorageEnforce", "none" },
    { "AccountingStorageHost", "localhost" },
    { "AccountingStorageExternalHost", NOTHING },
    { "AccountingStorageParameters", NOTHING },
    { "AccountingStoragePort", "0" },
    { "AccountingStorageTRES", "cpu,mem,energy,node,billing,gres/gpu" },
    { "AccountingStorageType", "accounting_storage/slurmdbd" },
    { "AccountingStorageUser", "N/A" },
    { "AccountingStoreFlags", "job_comment,job_script" },
    { "AcctGatherEnergyType", "acct_gather_energy/none" },
    { "AcctGatherFilesystemType", "acct_gather_filesystem/none" },
    { "AcctGatherInterconnectType", "acct_gather_interconnect/none" },
    { "AcctGatherNodeFreq", "0 sec" },
    { "AcctGatherProfileType", "acct_gather_profile/none" },
    { "AllowSpecResourcesUsage", "No" },
    { "AuthAltTypes", NOTHING },
    { "AuthAltParameters", NOTHING },
    { "AuthInfo", NOTHING },
    { "AuthType", "auth/none" }, // the kernel identifies the callers of a socket
    { "BatchStartTimeout", "10 sec" },
    { "BcastExclude", NOTHING },
    { "BcastParameters", NOTHING },
    { "BOOT_TIME", "N/A" },
    { "BurstBufferType", NOTHING },
    { "CliFilterPlugins", NOTHING },
    { "ClusterName", "mgpu" },
    { "CommunicationParameters", NOTHING },
    { "CompleteWait", "0 sec" },
    { "CoreSpecPlugin", "core_spec/none" },
    { "CpuFreqDef", "Unknown" },
    { "CpuFreqGovernors", NOTHING },
    { "CredType", "cred/none" },
    { "DebugFlags", NOTHING },
    { "DefMemPerNode", "UNLIMITED" },
    { "DependencyParameters", NOTHING },
    { "DisableRootJobs", "No" },
    { "EioTimeout", "60" },
    { "EnforcePartLimits", "ALL" },
    { "Epilog", NOTHING },
    { "EpilogMsgTime", "2000 usec" },
    { "EpilogSlurmctld", NOTHING },
    { "ExtSensorsType", "ext_sensors/none" },
    { "ExtSensorsFreq", "0 sec" },
    { "FederationParameters", NOTHING },
    { "FirstJobId", "1" },
    { "GetEnvTimeout", "2 sec" },
    { "GresTypes", "gpu" },
    { "GpuFreqDef", NOTHING },
    { "GroupUpdateForce", "1" },
    { "GroupUpdateTime", "600 sec" },
    { "HASH_VAL", "Match" },
    { "HealthCheckInterval", "0 sec" },
    { "HealthCheckNodeState", "ANY" },
    { "HealthCheckProgram", NOTHING },
    { "InactiveLimit", "0 sec" },
    { "InteractiveStepOptions", "--interactive --preserve-env --pty $SHELL" },
    { "JobAcctGatherFrequency", "30" },
    { "JobAcctGatherType", "jobacct_gather/cgroup" },
    { "JobAcctGatherParams", NOTHING },
    { "JobCompHost", "localhost" },
    { "JobCompLoc", NOTHING },
    { "JobCompPort", "0" },
    { "JobCompType", "jobcomp/none" },
    { "JobCompUser", "root" },
    { "JobContainerType", "job_container/none" },
    { "JobCredentialPrivateKey", NOTHING },
    { "JobCredentialPublicCertificate", NOTHING },
    { "JobDefaults", NOTHING },
    { "JobFileAppend", "0" },
    { "JobRequeue", "0" },
    { "JobSubmitPlugins", NOTHING },
    { "KillOnBadExit", "0" },
    { "KillWait", "30 sec" },
    { "LaunchParameters", NOTHING },
    { "LaunchType", "launch/slurm" },
    { "Licenses", NOTHING },
    { "LogTimeFormat", "iso8601_ms" },
    { "MailDomain", NOTHING },
    { "MailProg", NOTHING },
    { "MaxArraySize", "100000" },
    { "MaxDBDMsgs", "0" },
    { "MaxJobCount", "100000" },
    { "MaxJobId", "67043328" },
    { "MaxMemPerNode", "UNLIMITED" },
    { "MaxNodeCount", "0" },
    { "MaxStepCount", "40000" },
    { "MaxTasksPerNode", "512" },
    { "MCSPlugin", "mcs/none" },
    { "MCSParameters", NOTHING },
    { "MessageTimeout", "10 sec" },
    { "MinJobAge", "300 sec" },
    { "MpiDefault", "none" },
    { "MpiParams", NOTHING },
    { "MULTIPLE_SLURMD", "No" },
    { "NEXT_JOB_ID", "N/A" },
    { "NodeFeaturesPlugins", NOTHING },
    { "OverTimeLimit", "0 min" },
    { "PluginDir", NOTHING },
    { "PlugStackConfig", NOTHING },
    { "PowerParameters", NOTHING },
    { "PowerPlugin", "" },
    { "PreemptMode", "OFF" },
    { "PreemptType", "preempt/none" },
    { "PreemptExemptTime", "00:00:00" },
    { "PrEpParameters", NOTHING },
    { "PrEpPlugins", NOTHING },
    { "PriorityParameters", NOTHING },
    { "PrioritySiteFactorParameters", NOTHING },
    { "PrioritySiteFactorPlugin", NOTHING },
    { "PriorityType", "priority/basic" },
    { "PrivateData", "none" },
    { "ProctrackType", "proctrack/cgroup" },
    { "Prolog", NOTHING },
    { "PrologEpilogTimeout", "65534" },
    { "PrologSlurmctld", NOTHING },
    { "PrologFlags", "Alloc,Contain" },
    { "PropagatePrioProcess", "0" },
    { "PropagateResourceLimits", "NONE" },
    { "PropagateResourceLimitsExcept", NOTHING },
    { "RebootProgram", NOTHING },
    { "ReconfigFlags", NOTHING },
    { "RequeueExit", NOTHING },
    { "RequeueExitHold", NOTHING },
    { "ResumeFailProgram", NOTHING },
    { "ResumeProgram", NOTHING },
    { "ResumeRate", "300 nodes/min" },
    { "ResumeTimeout", "60 sec" },
    { "ResvEpilog", NOTHING },
    { "ResvOverRun", "0 min" },
    { "ResvProlog", NOTHING },
    { "ReturnToService", "2" },
    { "RoutePlugin", "route/default" },
    { "SchedulerParameters", NOTHING },
    { "SchedulerTimeSlice", "30 sec" },
    { "SchedulerType", "sched/backfill" },
    { "ScronParameters", NOTHING },
    { "SelectType", "select/cons_tres" },
    { "SelectTypeParameters", "CR_CORE_MEMORY" },
    { "SlurmUser", "mgpu" },
    { "SlurmctldAddr", NOTHING },
    { "SlurmctldDebug", "info" },
    { "SlurmctldHost[0]", NULL },
    { "SlurmctldLogFile", NOTHING },
    { "SlurmctldPort", "0" },
    { "SlurmctldSyslogDebug", NOTHING },
    { "SlurmctldPrimaryOffProg", NOTHING },
    { "SlurmctldPrimaryOnProg", NOTHING },
    { "SlurmctldTimeout", "120 sec" },
    { "SlurmctldParameters", NOTHING },
    { "SlurmdDebug", "info" },
    { "SlurmdLogFile", NOTHING },
    { "SlurmdParameters", NOTHING },
    { "SlurmdPidFile", NOTHING },
    { "SlurmdPort", "0" },
    { "SlurmdSpoolDir", NOTHING },
    { "SlurmdSyslogDebug", NOTHING },
    { "SlurmdTimeout", "300 sec" },
    { "SlurmdUser", "root(0)" },
    { "SlurmSchedLogFile", NOTHING },
    { "SlurmSchedLogLevel", "0" },
    { "SlurmctldPidFile", NOTHING },
    { "SlurmctldPlugstack", NOTHING },
    { "SLURM_CONF", "/dev/null" },
    { "SLURM_VERSION", SLURM_VERSION },
    { "SrunEpilog", NOTHING },
    { "SrunPortRange", "0-0" },
    { "SrunProlog", NOTHING },
    { "StateSaveLocation", NOTHING },
    { "SuspendExcNodes", NOTHING },
    { "SuspendExcParts", NOTHING },
    { "SuspendProgram", NOTHING },
    { "SuspendRate", "60 nodes/min" },
    { "SuspendTime", "INFINITE" },
    { "SuspendTimeout", "30 sec" },
    { "SwitchParameters", NOTHING },
    { "SwitchType", "switch/none" },
    { "TaskEpilog", NOTHING },
    { "TaskPlugin", "task/cgroup" },
    { "TaskPluginParam", "(null type)" },
    { "TaskProlog", NOTHING },
    { "TCPTimeout", "2 sec" },
    { "TmpFS", "/tmp" },
    { "TopologyParam", NOTHING },
    { "TopologyPlugin", "topology/none" },
    { "TrackWCKey", "No" },
    { "TreeWidth", "50" },
    { "UsePam", "No" },
    { "UnkillableStepProgram", NOTHING },
    { "UnkillableStepTimeout", "60 sec" },
    { "VSizeFactor", "0 percent" },
    { "WaitTime", "0 sec" },
    { "X11Parameters", NOTHING },
};

static int show_config(void)
{
    char host[256] = "localhost";
    (void)gethostname(host, sizeof(host) - 1);
    _cleanup_free_ char *now = slurm_time_text(clock_wall_ms(), "");
    (void)printf("Configuration data as of %s\n", now);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        (void)printf("%-23s = %s\n", settings[i].key, settings[i].value != NULL ? settings[i].value : host);
    (void)printf("\nSlurmctld(primary) at %s is UP\n", host);
    return 0;
}

/* --- the rest --- */

/* The daemons of this machine, under Slurm's names: mgpud if its socket is here, and the agent on a node. */
static int show_daemons(struct client *client, struct error *err)
{
    char host[256] = "";
    (void)gethostname(host, sizeof(host) - 1);
    _cleanup_json_ json_t *nodes = NULL;
    size_t index = 0;
    json_t *node = NULL;
    bool is_node = false;
    int r = slurm_nodes_get(client, &nodes, err);
    if (r < 0)
        return r;
    json_array_foreach(nodes, index, node)
    {
        const char *name = field_text(node, "name"), *machine = field_text(node, "host");
        is_node |= name != NULL && strcmp(name, host) == 0;
        is_node |= machine != NULL && strcmp(machine, host) == 0;
    }
    (void)printf("%s%s\n", client->host == NULL ? "slurmctld " : "", is_node ? "slurmd" : "");
    return 0;
}

static int show_hostnames(const char *list, struct error *err)
{
    const char *text = list != NULL ? list : getenv("SLURM_JOB_NODELIST");
    _cleanup_strings_ struct strings names = { 0 };
    if (list != NULL && list[0] == '\0')
        return 0;
    if (text == NULL || text[0] == '\0') {
        (void)fprintf(stderr, "scontrol: error: host list is empty\n");
        return 0; // Slurm's status
    }
    int r = hostlist_expand(text, &names, err);
    if (r < 0)
        return error_set(err, r, "Invalid hostlist: %.200s", text);
    for (size_t i = 0; i < names.count; i++)
        (void)puts(names.items[i]);
    return 0;
}

static bool is_word(const char *word, const char *name, size_t least)
{
    return strlen(word) >= least && strncasecmp(word, name, strlen(word)) == 0;
}

int scontrol_show(struct client *client, const char *word, const char *name, const struct scontrol_form *form,
    struct error *err)
{
    const char *equals = strchr(word, '=');
    _cleanup_free_ char *entity = xstrndup(word, equals != NULL ? (size_t)(equals - word) : strlen(word));
    name = equals != NULL ? equals + 1 : name;
    if (is_word(entity, "jobs", 1) || strcasecmp(entity, "jobid") == 0)
        return scontrol_show_jobs(client, name, form, err);
    if (is_word(entity, "nodes", 1))
        return scontrol_show_nodes(client, name, form, err);
    if (is_word(entity, "partitions", 1))
        return scontrol_show_partitions(client, name, form, err);
    if (is_word(entity, "configuration", 3))
        return show_config();
    if (is_word(entity, "daemons", 2))
        return show_daemons(client, err);
    if (is_word(entity, "hostnames", 5))
        return show_hostnames(name, err);
    if (is_word(entity, "hostlistsorted", 5))
        return scontrol_hostlist(name, strlen(entity) > strlen("hostlist"), err);
    if (is_word(entity, "steps", 2))
        return show_steps(client, name, form, err);
    if (is_word(entity, "licenses", 3)) {
        scontrol_count_print(0, form);
        (void)puts("No licenses configured in Slurm.");
        return 0;
    }
    if (is_word(entity, "reservations", 3)) { // these have no names
        _cleanup_free_ char *shown = name != NULL ? text_escape(name, 60) : NULL;
        scontrol_count_print(0, form);
        (void)printf(shown != NULL ? "Reservation %s not found\n" : "No reservations in the system%s\n",
            shown != NULL ? shown : "");
        return shown != NULL;
    }
    return scontrol_misuse(err, "invalid entity:%.60s for keyword:show", word);
}
