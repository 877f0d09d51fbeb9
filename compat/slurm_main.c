/* SPDX-License-Identifier: MIT */
/*
 * mgpu-slurm: the commands of Slurm. Its name (`mgpu compat install --slurm` creates links), or its first
 * argument, selects one. As slurmstepd it runs the tasks of a step on one node for srun.
 */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/api/exit_code.h"
#include "cli/term/standard.h"
#include "compat/slurm/check.h"
#include "compat/slurm/slurm.h"
#include "compat/stepd/stepd.h"

static int explain(void)
{
    (void)fputs("usage: " SLURM_PROGRAM " COMMAND [ARGUMENT...]\n\nCommands:", stderr);
    for (const struct slurm_program *row = slurm_programs; row->name != NULL; row++)
        (void)fprintf(stderr, " %s", row->name);
    (void)fputs(
        "\nLinks with these names: mgpu compat install --slurm FOLDER. More: man mgpu-slurm\n", stderr);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    standard_descriptors_hold();
    (void)mallopt(M_MXFAST, 0); // makes long lists a fifth faster by not merging fast bins
    const struct slurm_program *program = argc > 0 ? slurm_program_find(argv[0]) : NULL;
    if (program == NULL && argc > 1) {
        argc--;
        argv++;
        program = slurm_program_find(argv[0]);
    }
    if (program == NULL && argc > 0 && strcmp(argv[0], "tables") == 0) {
        slurm_document();
        return standard_output_end(EXIT_OK);
    }
    if (program == NULL && argc > 0 && strcmp(argv[0], "slurmstepd") == 0)
        return stepd_run(STDIN_FILENO, STDOUT_FILENO);
    if (program == NULL && argc > 0 && strcmp(argv[0], "check") == 0)
        return standard_output_end(slurm_check(argc, argv));
    slurm_message_timeout();
    if (program != NULL && slurm_options_answer(program, argc, argv))
        return standard_output_end(EXIT_OK);
    return standard_output_end(program == NULL ? explain() : program->run(program, argc, argv));
}
