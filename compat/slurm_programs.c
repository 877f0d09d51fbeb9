/* SPDX-License-Identifier: MIT */
/* The commands, and their options as listed in docs/slurm.md. A new command is a row here and a file. */
#include "compat/slurm/programs.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/submit/slurm_job.h"
#include "compat/slurm/slurm.h"

/* Commands without an equivalent, and what to use instead. */
static int run_refused(const struct slurm_program *program, int argc, char **argv)
{
    static const struct {
        const char *name, *sentence;
    } refusals[] = {
        { "strigger",
            "there are no triggers: sbatch --mail-type and mgpu submit --notify report on a job, and "
            "mgpu wait ends with it" },
        { "sview", "there is no window: mgpu top shows jobs and GPUs on the terminal, and mgpu web in a "
                   "browser" },
        { "scrontab", "mgpud submits no jobs at fixed times: call sbatch from crontab(1) or a timer of "
                      "systemd, or use sbatch --begin" },
    };
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        if (strcmp(refusals[i].name, program->name) == 0)
            (void)fprintf(stderr, "%s: error: %s\n", program->name, refusals[i].sentence);
    return 1;
}

const struct slurm_program slurm_programs[] = {
    { "sbatch", SLURM_SBATCH, "[OPTIONS] script [args...]", "Submit a script as a job", slurm_submit_options,
        slurm_run_sbatch },
    { "srun", SLURM_SRUN, "[OPTIONS] executable [args...]", "Run tasks: in a job, or as one",
        slurm_submit_options, slurm_run_srun },
    { "salloc", SLURM_SALLOC, "[OPTIONS] [command [args...]]", "Allocate, and run a shell or a command",
        slurm_submit_options, slurm_run_salloc },
    { "squeue", SLURM_SQUEUE, "[OPTIONS]", "List waiting and running jobs", slurm_squeue_options,
        slurm_run_squeue },
    { "scancel", SLURM_SCANCEL, "[OPTIONS] [job_id...]", "End jobs, or send them a signal",
        slurm_scancel_options, slurm_run_scancel },
    { "sacct", SLURM_SACCT, "[<OPTION>]", "List jobs, ended ones too", slurm_sacct_options, slurm_run_sacct },
    { "sinfo", SLURM_SINFO, "[OPTIONS]", "List the partitions and their nodes", slurm_sinfo_options,
        slurm_run_sinfo },
    { "scontrol", SLURM_SCONTROL, "[<OPTION>] [<COMMAND>]", "Show objects, and change jobs",
        slurm_scontrol_options, slurm_run_scontrol },
    { "sacctmgr", SLURM_SACCTMGR, "show|list ENTITY [NAME] [format=FIELDS]", "Show the one account",
        slurm_sacctmgr_options, slurm_run_sacctmgr },
    { "sshare", SLURM_SSHARE, "[OPTION]", "Show the shares of users", slurm_sshare_options, slurm_run_other },
    { "sprio", SLURM_SPRIO, "[OPTIONS]", "Show the order of waiting jobs", slurm_sprio_options,
        slurm_run_other },
    { "sreport", SLURM_SREPORT, "[OPTIONS] cluster|user REPORT [start=TIME] [end=TIME]",
        "Show the usage of users and the cluster in a period", slurm_sreport_options, slurm_run_sreport },
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
    { "strigger", 0, "", "Name the replacement for triggers", NULL, run_refused },
    { "sview", 0, "", "Name the replacement for a window of jobs", NULL, run_refused },
    { "scrontab", 0, "", "Name the replacement for jobs at fixed times", NULL, run_refused },
    { 0 },
};

/* --- the tables of the manual --- */

/* Commands with the same table share a section, with a column that names them. */
static bool is_first_of_table(const struct slurm_program *program)
{
    for (const struct slurm_program *before = slurm_programs; before != program; before++)
        if (before->options == program->options)
            return false;
    return true;
}

static void print_programs(const struct slurm_program *program, unsigned bits)
{
    const char *separator = "";
    for (const struct slurm_program *row = program; row->name != NULL; row++)
        if (row->options == program->options && (row->bit & bits) != 0) {
            (void)printf("%s%s", separator, row->name);
            separator = ", ";
        }
}

static void print_cell(const char *text)
{
    for (const char *p = text; *p != '\0'; p++)
        (void)printf("%s%c", *p == '|' ? "\\" : "", *p);
}

static void print_option(const struct slurm_program *program, const struct slurm_option *option)
{
    bool is_optional = slurm_option_is_optional(option);
    (void)printf("| `");
    if (option->letter != 0)
        (void)printf("-%c`, `", option->letter);
    (void)printf("--%s", option->name);
    if (option->argument != NULL) {
        (void)printf("%s", is_optional ? "" : "=");
        print_cell(option->argument);
    }
    (void)printf("` | ");
    print_programs(program, option->programs);
    (void)printf(" | %s | ", slurm_effect_name(option->effect));
    print_cell(option->help);
    (void)printf(" |\n");
}

void slurm_document(void)
{
    for (const struct slurm_program *program = slurm_programs; program->name != NULL; program++) {
        if (program->options == NULL || !is_first_of_table(program))
            continue;
        (void)printf("### ");
        print_programs(program, ~0U);
        (void)printf("\n\n| option | of | here | |\n| --- | --- | --- | --- |\n");
        for (const struct slurm_option *row = program->options; row->name != NULL; row++)
            print_option(program, row);
        (void)printf("\n");
    }
}
