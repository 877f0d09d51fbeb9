/* SPDX-License-Identifier: MIT */
/* The commands. A new one is a row here and a file. */
#include "cli/slurm/programs.h"

#include "cli/slurm/slurm.h"
#include "cli/submit/slurm_job.h"

const struct slurm_program slurm_programs[] = {
    { "sbatch", SLURM_SBATCH, "[OPTIONS] script [args...]", "Submit a script as a job", slurm_submit_options,
        slurm_run_sbatch },
    { "srun", SLURM_SRUN, "[OPTIONS] executable [args...]", "Run tasks: in a job, or as one",
        slurm_submit_options, slurm_run_srun },
    { "salloc", SLURM_SALLOC, "[OPTIONS] [command [args...]]", "Allocate, and run a shell or a command",
        slurm_submit_options, slurm_run_salloc },
    { "squeue", SLURM_SQUEUE, "[OPTIONS]", "List jobs that wait and run", slurm_squeue_options,
        slurm_run_squeue },
    { "scancel", SLURM_SCANCEL, "[OPTIONS] [job_id...]", "End jobs, or send them a signal",
        slurm_scancel_options, slurm_run_scancel },
    { "sacct", SLURM_SACCT, "[<OPTION>]", "List jobs, ended ones too", slurm_sacct_options, slurm_run_sacct },
    { "sinfo", SLURM_SINFO, "[OPTIONS]", "List the partitions and their nodes", slurm_sinfo_options,
        slurm_run_sinfo },
    { "scontrol", SLURM_SCONTROL, "[<OPTION>] [<COMMAND>]", "Show things, and change jobs",
        slurm_scontrol_options, slurm_run_scontrol },
    { "sacctmgr", SLURM_SACCTMGR, "show|list ENTITY [NAME] [format=FIELDS]", "Show the one account",
        slurm_sacctmgr_options, slurm_run_other },
    { "sshare", SLURM_SSHARE, "[OPTION]", "Show the shares of users", slurm_sshare_options, slurm_run_other },
    { "sprio", SLURM_SPRIO, "[OPTIONS]", "Show the places of jobs that wait", slurm_sprio_options,
        slurm_run_other },
    { "sreport", SLURM_SREPORT, "[OPTIONS] cluster|user REPORT [start=TIME] [end=TIME]",
        "Show what users and the cluster had in a period", slurm_sreport_options, slurm_run_sreport },
    { "seff", SLURM_SEFF, "[OPTIONS] job_id", "Show how much of its resources a job has used",
        slurm_seff_options, slurm_run_seff },
    { "sdiag", SLURM_SDIAG, "", "Show how many jobs there are", slurm_sdiag_options, slurm_run_other },
    { "sstat", SLURM_SSTAT, "[<OPTION>] -j <job(.stepid)>", "Show the memory of running jobs",
        slurm_sstat_options, slurm_run_other },
    { "sattach", SLURM_SATTACH, "job_id.step_id", "Follow the output of a job", slurm_sattach_options,
        slurm_run_other },
    { "sbcast", SLURM_SBCAST, "[OPTIONS] SOURCE DESTINATION", "Copy a file to the nodes of a job",
        slurm_sbcast_options, slurm_run_other },
    { "slurmrestd", SLURM_RESTD, "[OPTIONS] [unix:/path/to/socket]", "Answer the REST API of Slurm",
        slurm_restd_options, slurm_run_restd },
    { 0 },
};
