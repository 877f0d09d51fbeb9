/* SPDX-License-Identifier: MIT */
/*
 * The table lists the variables set by the agent (agent/launch, agent/mps), apart from each vendor's lists of
 * GPUs (base/gpu_vendor.h), those that srun and slurmstepd set for the tasks of a step, and those that
 * launchers within jobs set for their processes. Variables of the last kind have common names, and count only
 * together with one that only the launcher sets.
 */
#include "job/inherited.h"

#include <stdlib.h>
#include <string.h>

#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "job/slurm.h"

const struct inherited_variable inherited_variables[] = {
    { "MGPU_JOB_ID", NULL, "the job" },
    { "MGPU_JOB_NAME", NULL, "the job" },
    { "MGPU_ATTEMPT", NULL, "the job" },
    { "MGPU_STEP", NULL, "the job" },
    { "MGPU_TASK", NULL, "the job" },
    { "MGPU_ARRAY_JOB", NULL, "its array" },
    { "MGPU_ARRAY_INDEX", NULL, "its array" },
    { "MGPU_GPUS", NULL, "its GPUs" },
    { "MGPU_NUM_GPUS", NULL, "its GPUs" },
    { "MGPU_NODE", NULL, "its node" },
    { "MGPU_SCRIPT", NULL, "its script" },
    { "MGPU_NOTIFY", NULL, "its status reports" },
    { "MGPU_NOTICES", NULL, "its share of a GPU" },
    { "CUDA_MPS_*", NULL, "its share of a GPU" },
    { "GPU_DEVICE_ORDINAL", NULL, "its GPUs" },
    { "MGPU_NNODES", NULL, "its nodes" },
    { "MGPU_NODE_RANK", NULL, "its nodes" },
    { "MGPU_NODELIST", NULL, "its nodes" },
    { "MGPU_HOSTS", NULL, "its nodes" },
    { "MGPU_HOSTFILE", NULL, "its nodes" },
    { "NNODES", "MGPU_NNODES", "its nodes" },
    { "NODE_RANK", "MGPU_NNODES", "its nodes" },
    { "MASTER_ADDR", "MGPU_NNODES", "where its nodes meet" },
    { "MASTER_PORT", "MGPU_NNODES", "where its nodes meet" },
    { "PET_*", "MGPU_NNODES", "options of torchrun" },
    { "NCCL_SOCKET_IFNAME", "MGPU_NNODES", "the network of its node" },
    { "GLOO_SOCKET_IFNAME", "MGPU_NNODES", "the network of its node" },
    { "SLURM_*", NULL, "the job and step, in the words of Slurm" },
    { "SLURMD_*", NULL, "the job and step, in the words of Slurm" },
    { "SRUN_DEBUG", NULL, "the step" },
    { "ENVIRONMENT", "SLURM_JOB_ID", "the job" },
    { "PMI_*", NULL, "a process of MPI" },
    { "PMIX_*", NULL, "a process of MPI" },
    { "OMPI_COMM_WORLD_*", NULL, "a process of MPI" },
    { "OMPI_UNIVERSE_SIZE", NULL, "a process of MPI" },
    { "OMPI_APP_CTX_NUM_PROCS", NULL, "a process of MPI" },
    { "OMPI_FIRST_RANKS", NULL, "a process of MPI" },
    { "OMPI_NUM_APP_CTX", NULL, "a process of MPI" },
    { "OMPI_MCA_ess_*", NULL, "a process of MPI" },
    { "OMPI_MCA_orte_*", NULL, "a process of MPI" },
    { "PRTE_*", NULL, "a process of MPI" },
    { "HYDI_CONTROL_FD", NULL, "a process of MPI" },
    { "MPI_LOCALRANKID", NULL, "a process of MPI" },
    { "MPI_LOCALNRANKS", NULL, "a process of MPI" },
    { "TORCHELASTIC_*", NULL, "a process of torchrun" },
    { "RANK", "TORCHELASTIC_RUN_ID", "a process of torchrun" },
    { "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "a process of torchrun" },
    { "LOCAL_RANK", "TORCHELASTIC_RUN_ID", "a process of torchrun" },
    { "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "a process of torchrun" },
    { "GROUP_RANK", "TORCHELASTIC_RUN_ID", "a process of torchrun" },
    { "GROUP_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "a process of torchrun" },
    { "ROLE_*", "TORCHELASTIC_RUN_ID", "a process of torchrun" },
    { "MASTER_ADDR", "TORCHELASTIC_RUN_ID", "a process of torchrun" },
    { "MASTER_PORT", "TORCHELASTIC_RUN_ID", "a process of torchrun" },
    { 0 },
};

bool inherited_is_in_job(const void *environment, inherited_get_fn *get)
{
    const char *cluster = get(environment, "SLURM_CLUSTER_NAME");
    bool is_slurm = get(environment, "SLURM_JOB_ID") != NULL;
    return get(environment, "MGPU_JOB_ID") != NULL ||
           (is_slurm && cluster != NULL && strcmp(cluster, SLURM_CLUSTER) == 0);
}

static bool is_named(const struct inherited_variable *row, const char *name)
{
    size_t length = strlen(row->name);
    bool is_prefix = row->name[length - 1] == '*';
    return is_prefix ? strncmp(name, row->name, length - 1) == 0 : strcmp(name, row->name) == 0;
}

bool inherited_describes(const char *name, const void *environment, inherited_get_fn *get)
{
    for (const struct inherited_variable *row = inherited_variables; row->name != NULL; row++)
        if (is_named(row, name) && (row->with == NULL || get(environment, row->with) != NULL))
            return true;
    return gpu_vendor_lists(name);
}

static const char *get_entry(const void *environment, const char *name)
{
    return strings_get_env(environment, name);
}

void inherited_drop(struct strings *env)
{
    _cleanup_strings_ struct strings kept = { 0 };
    if (!inherited_is_in_job(env, get_entry))
        return;
    for (size_t i = 0; i < env->count; i++) {
        _cleanup_free_ char *name = xstrndup(env->items[i], strcspn(env->items[i], "="));
        if (!inherited_describes(name, env, get_entry))
            strings_add(&kept, env->items[i]);
    }
    strings_clear(env);
    strings_copy(env, &kept);
}
