/* SPDX-License-Identifier: MIT */
/*
 * mgpu-compat: the commands of other small schedulers. Its name (`mgpu compat install` creates links), or its
 * first argument, selects one.
 */
#include <stdio.h>
#include <string.h>

#include "cli/api/exit_code.h"
#include "cli/term/standard.h"
#include "compat/personalities/personality.h"

static int explain(void)
{
    (void)fputs(
        "usage: mgpu-compat NAME [ARGUMENT...]\n\nAll names: mgpu compat list. More: man mgpu-compat\n",
        stderr);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    standard_descriptors_hold();
    const struct personality *personality = argc > 0 ? personality_find(argv[0]) : NULL;
    if (personality == NULL && argc > 1) {
        argc--;
        argv++;
        personality = personality_find(argv[0]);
    }
    return standard_output_end(personality == NULL ? explain() : personality_run(personality, argc, argv));
}
