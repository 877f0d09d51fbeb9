/* SPDX-License-Identifier: MIT */
#include "compat/slurm/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/submit/slurm_job.h"
#include "cli/submit/slurm_lines.h"
#include "compat/slurm/script.h"
#include "compat/slurm/slurm.h"

struct check {
    struct slurm_job job;
    const char *script;
    int different, refused; // options of this script
};

static void print_problem(struct check *check, const char *where, const struct error *problem)
{
    _cleanup_free_ char *line = xstrdup(problem->message);
    for (char *p = strchr(line, '\n'); p != NULL; p = strchr(p, '\n'))
        *p = ' ';
    _cleanup_free_ char *message = text_escape(line, sizeof(problem->message));
    (void)printf("%s: refused: %s\n", where, message);
    check->refused++;
}

/* A slurm_report_fn. */
static void report(const struct slurm_reading *reading, const struct slurm_option *option, const char *value,
    const struct error *problem)
{
    struct check *check = reading->target;
    const char *where = reading->where != NULL ? reading->where : check->script;
    _cleanup_free_ char *shown = value != NULL ? text_escape(value, 200) : NULL;
    if (problem != NULL) {
        _cleanup_free_ char *which = xasprintf(
            "%s: --%s%s%s", where, option->name, shown != NULL ? "=" : "", shown != NULL ? shown : "");
        print_problem(check, which, problem);
        return;
    }
    if (option->effect == SLURM_DONE)
        return;
    (void)printf("%s: --%s%s%s: %s%s%s\n", where, option->name, shown != NULL ? "=" : "",
        shown != NULL ? shown : "", slurm_effect_name(option->effect),
        option->effect == SLURM_REFUSED ? ": " : "",
        option->effect == SLURM_REFUSED    ? option->help
        : option->effect == SLURM_RECORDED ? ", and shown again"
                                           : ", without effect");
    check->different++;
    check->refused += option->effect == SLURM_REFUSED;
}

/* True if sbatch would refuse the script. */
static bool check_script(const char *file)
{
    const struct slurm_program *sbatch = slurm_program_find("sbatch");
    _cleanup_slurm_script_ struct slurm_script script = { 0 };
    struct check check = { .script = file };
    struct error err = { 0 };
    const struct slurm_reading reading = { .program = sbatch, .target = &check, .report = report };
    slurm_job_init(&check.job);
    int r = slurm_script_read(&script, file, &err);
    if (r == 0)
        r = slurm_lines_read(script.text, script.name, &reading, &check.job.kept, &err);
    if (r == 0 && check.refused == 0)
        r = slurm_job_resolve(&check.job, sbatch, &err);
    if (r < 0)
        print_problem(&check, file, &err);
    else if (check.different + check.refused == 0)
        (void)printf("%s: no difference\n", file);
    slurm_job_clear(&check.job);
    return check.refused > 0;
}

int slurm_check(int argc, char **argv)
{
    bool is_refused = false;
    for (int i = 1; i < argc; i++)
        is_refused |= check_script(argv[i]);
    if (argc < 2)
        (void)fputs("usage: " SLURM_PROGRAM " check SCRIPT...\n", stderr);
    return argc < 2 ? EXIT_USAGE : is_refused ? EXIT_FAILURE : EXIT_OK;
}
