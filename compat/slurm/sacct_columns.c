/* SPDX-License-Identifier: MIT */
#include "compat/slurm/sacct_columns.h"

#include <stdlib.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "compat/slurm/steps.h"

#define MODEL_MAX 256U

/* The time for which it waited. */
static char *text_planned(const json_t *job, int64_t now_ms)
{
    _cleanup_free_ char *seconds = slurm_text_pending_time(job, now_ms);
    return slurm_duration_text(strtoll(seconds, NULL, 10), true);
}

static char *text_suspended(const json_t *job, int64_t now_ms)
{
    if (!field_is_known(job, SLURM_SUSPENDED))
        return xstrdup("");
    return slurm_duration_text(field_integer(job, SLURM_SUSPENDED, 0), true);
}

char *slurm_text_constraints(const json_t *job, int64_t now_ms)
{
    const char *model = field_text(job, "gpu_model");
    return model != NULL ? text_escape(model, MODEL_MAX) : xstrdup("");
}

/* The fields of Slurm 22.05, and the number of characters of each without %width; fields that are not
 * measured here are empty. */
const struct slurm_column slurm_sacct_columns[] = {
    { 0, "Account", "Account", slurm_text_account, -10 },
    { 0, "AdminComment", "AdminComment", slurm_text_none, -19 },
    { 0, "AllocCPUS", "AllocCPUS", slurm_text_cpus, -10 },
    { 0, "AllocNodes", "AllocNodes", slurm_text_node_count, -10 },
    { 0, "AllocTRES", "AllocTRES", slurm_text_tres, -10 },
    { 0, "AssocID", "AssocID", slurm_text_zero, -7 },
    { 0, "AveCPU", "AveCPU", slurm_text_ave_cpu, -10 },
    { 0, "AveCPUFreq", "AveCPUFreq", slurm_text_none, -10 },
    { 0, "AveDiskRead", "AveDiskRead", slurm_text_none, -14 },
    { 0, "AveDiskWrite", "AveDiskWrite", slurm_text_none, -14 },
    { 0, "AvePages", "AvePages", slurm_text_none, -10 },
    { 0, "AveRSS", "AveRSS", slurm_text_ave_rss, -10 },
    { 0, "AveVMSize", "AveVMSize", slurm_text_none, -10 },
    { 0, "BlockID", "BlockID", slurm_text_none, -16 },
    { 0, "Cluster", "Cluster", slurm_text_cluster, -10 },
    { 0, "Comment", "Comment", slurm_text_comment, -14 },
    { 0, "Constraints", "Constraints", slurm_text_constraints, -19 },
    { 0, "ConsumedEnergy", "ConsumedEnergy", slurm_text_none, -14 },
    { 0, "ConsumedEnergyRaw", "ConsumedEnergyRaw", slurm_text_none, -17 },
    { 0, "Container", "Container", slurm_text_none, -19 },
    { 0, "CPUTime", "CPUTime", slurm_text_cpu_time, -10 },
    { 0, "CPUTimeRAW", "CPUTimeRAW", slurm_text_cpu_time_raw, -10 },
    { 0, "DBIndex", "DBIndex", slurm_text_raw_id, -19 },
    { 0, "DerivedExitCode", "DerivedExitCode", slurm_text_derived_exit, -15 },
    { 0, "Elapsed", "Elapsed", slurm_text_elapsed, -10 },
    { 0, "ElapsedRaw", "ElapsedRaw", slurm_text_elapsed_raw, -10 },
    { 0, "Eligible", "Eligible", slurm_text_submitted, -19 },
    { 0, "End", "End", slurm_text_account_end, -19 },
    { 0, "ExitCode", "ExitCode", slurm_text_account_exit, -8 },
    { 0, "FailedNode", "FailedNode", slurm_text_none, -10 },
    { 0, "Flags", "Flags", slurm_text_none, -19 },
    { 0, "GID", "GID", slurm_text_gid, -6 },
    { 0, "Group", "Group", slurm_text_group, -9 },
    { 0, "JobID", "JobID", slurm_text_job_id, 12 },
    { 0, "JobIDRaw", "JobIDRaw", slurm_text_raw_id, 12 },
    { 0, "JobName", "JobName", slurm_text_name, -10 },
    { 0, "Layout", "Layout", slurm_text_none, -9 },
    { 0, "MaxDiskRead", "MaxDiskRead", slurm_text_none, -12 },
    { 0, "MaxDiskReadNode", "MaxDiskReadNode", slurm_text_none, -15 },
    { 0, "MaxDiskReadTask", "MaxDiskReadTask", slurm_text_none, -15 },
    { 0, "MaxDiskWrite", "MaxDiskWrite", slurm_text_none, -12 },
    { 0, "MaxDiskWriteNode", "MaxDiskWriteNode", slurm_text_none, -16 },
    { 0, "MaxDiskWriteTask", "MaxDiskWriteTask", slurm_text_none, -16 },
    { 0, "MaxPages", "MaxPages", slurm_text_none, -8 },
    { 0, "MaxPagesNode", "MaxPagesNode", slurm_text_none, -12 },
    { 0, "MaxPagesTask", "MaxPagesTask", slurm_text_none, -12 },
    { 0, "MaxRSS", "MaxRSS", slurm_text_max_rss, -10 },
    { 0, "MaxRSSNode", "MaxRSSNode", slurm_text_max_rss_node, -10 },
    { 0, "MaxRSSTask", "MaxRSSTask", slurm_text_max_rss_task, -10 },
    { 0, "MaxVMSize", "MaxVMSize", slurm_text_none, -10 },
    { 0, "MaxVMSizeNode", "MaxVMSizeNode", slurm_text_none, -14 },
    { 0, "MaxVMSizeTask", "MaxVMSizeTask", slurm_text_none, -14 },
    { 0, "McsLabel", "McsLabel", slurm_text_none, -9 },
    { 0, "MinCPU", "MinCPU", slurm_text_none, -10 },
    { 0, "MinCPUNode", "MinCPUNode", slurm_text_none, -10 },
    { 0, "MinCPUTask", "MinCPUTask", slurm_text_none, -10 },
    { 0, "NCPUS", "NCPUS", slurm_text_cpus, -10 },
    { 0, "NNodes", "NNodes", slurm_text_node_count, -8 },
    { 0, "NodeList", "NodeList", slurm_text_account_nodes, -15 },
    { 0, "NTasks", "NTasks", slurm_text_step_tasks, -8 },
    { 0, "Partition", "Partition", slurm_text_partition, -10 },
    { 0, "Planned", "Planned", text_planned, -10 },
    { 0, "PlannedCPU", "PlannedCPU", slurm_text_none, -10 },
    { 0, "PlannedCPURAW", "PlannedCPURAW", slurm_text_none, -13 },
    { 0, "Priority", "Priority", slurm_text_priority, -10 },
    { 0, "QOS", "QOS", slurm_text_qos, -10 },
    { 0, "QOSRAW", "QOSRAW", slurm_text_zero, -10 },
    { 0, "Reason", "Reason", slurm_text_reason, -22 },
    { 0, "ReqCPUFreq", "ReqCPUFreq", slurm_text_none, -10 },
    { 0, "ReqCPUFreqGov", "ReqCPUFreqGov", slurm_text_none, -13 },
    { 0, "ReqCPUFreqMax", "ReqCPUFreqMax", slurm_text_none, -13 },
    { 0, "ReqCPUFreqMin", "ReqCPUFreqMin", slurm_text_none, -13 },
    { 0, "ReqCPUS", "ReqCPUS", slurm_text_cpus, -8 },
    { 0, "ReqMem", "ReqMem", slurm_text_memory, -10 },
    { 0, "ReqNodes", "ReqNodes", slurm_text_node_count, -8 },
    { 0, "ReqTRES", "ReqTRES", slurm_text_tres, -10 },
    { 0, "Reservation", "Reservation", slurm_text_none, -20 },
    { 0, "ReservationId", "ReservationId", slurm_text_none, -15 },
    { 0, "Reserved", "Reserved", text_planned, -10 },
    { 0, "ResvCPU", "ResvCPU", slurm_text_none, -10 },
    { 0, "ResvCPURAW", "ResvCPURAW", slurm_text_none, -10 },
    { 0, "Start", "Start", slurm_text_account_start, -19 },
    { 0, "State", "State", slurm_text_account_state, -10 },
    { 0, "Submit", "Submit", slurm_text_submitted, -19 },
    { 0, "SubmitLine", "SubmitLine", slurm_text_submit_line, -20 },
    { 0, "Suspended", "Suspended", text_suspended, -10 },
    { 0, "SystemComment", "SystemComment", slurm_text_none, -19 },
    { 0, "SystemCPU", "SystemCPU", slurm_text_system_cpu, -10 },
    { 0, "Timelimit", "Timelimit", slurm_text_account_limit, -10 },
    { 0, "TimelimitRaw", "TimelimitRaw", slurm_text_limit_raw, -12 },
    { 0, "TotalCPU", "TotalCPU", slurm_text_total_cpu, -10 },
    { 0, "TRESUsageInAve", "TRESUsageInAve", slurm_text_none, -14 },
    { 0, "TRESUsageInMax", "TRESUsageInMax", slurm_text_none, -14 },
    { 0, "TRESUsageInMaxNode", "TRESUsageInMaxNode", slurm_text_none, -14 },
    { 0, "TRESUsageInMaxTask", "TRESUsageInMaxTask", slurm_text_none, -14 },
    { 0, "TRESUsageInMin", "TRESUsageInMin", slurm_text_none, -14 },
    { 0, "TRESUsageInMinNode", "TRESUsageInMinNode", slurm_text_none, -14 },
    { 0, "TRESUsageInMinTask", "TRESUsageInMinTask", slurm_text_none, -14 },
    { 0, "TRESUsageInTot", "TRESUsageInTot", slurm_text_none, -14 },
    { 0, "TRESUsageOutAve", "TRESUsageOutAve", slurm_text_none, -14 },
    { 0, "TRESUsageOutMax", "TRESUsageOutMax", slurm_text_none, -14 },
    { 0, "TRESUsageOutMaxNode", "TRESUsageOutMaxNode", slurm_text_none, -14 },
    { 0, "TRESUsageOutMaxTask", "TRESUsageOutMaxTask", slurm_text_none, -14 },
    { 0, "TRESUsageOutMin", "TRESUsageOutMin", slurm_text_none, -14 },
    { 0, "TRESUsageOutMinNode", "TRESUsageOutMinNode", slurm_text_none, -14 },
    { 0, "TRESUsageOutMinTask", "TRESUsageOutMinTask", slurm_text_none, -14 },
    { 0, "TRESUsageOutTot", "TRESUsageOutTot", slurm_text_none, -14 },
    { 0, "UID", "UID", slurm_text_uid, -6 },
    { 0, "User", "User", slurm_text_user, -9 },
    { 0, "UserCPU", "UserCPU", slurm_text_user_cpu, -10 },
    { 0, "WCKey", "WCKey", slurm_text_wckey, -10 },
    { 0, "WCKeyID", "WCKeyID", slurm_text_zero, -10 },
    { 0, "WorkDir", "WorkDir", slurm_text_directory, -20 },
    { 0 },
};
