/* SPDX-License-Identifier: MIT */
#include "cli/slurm/slurm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/api/client.h"

#define AWAY "Unable to contact slurm controller (connect failure)"

const struct slurm_program *slurm_program_find(const char *name)
{
    const char *slash = strrchr(name, '/');
    for (const struct slurm_program *row = slurm_programs; row->name != NULL; row++)
        if (strcmp(row->name, slash != NULL ? slash + 1 : name) == 0)
            return row;
    return NULL;
}

bool slurm_is_away(const struct error *err)
{
    return err->code == -EHOSTDOWN || client_is_loss(err->code);
}

void slurm_umask(void)
{
    const char *text = getenv("SLURM_UMASK");
    char *end = NULL;
    unsigned long mask = text != NULL ? strtoul(text, &end, 8) : 0;
    if (text != NULL && end != text && *end == '\0' && mask <= 0777)
        (void)umask((mode_t)mask);
}

static int exit_status(const struct slurm_program *program)
{
    const char *text = (program->bit & SLURM_SUBMITS) != 0 ? getenv("SLURM_EXIT_ERROR") : NULL;
    int64_t number = 1;
    if (text != NULL)
        (void)parse_integer(text, "SLURM_EXIT_ERROR", 0, 255, &number, NULL);
    return (int)number;
}

int slurm_fail(const struct slurm_program *program, const struct error *err)
{
    _cleanup_free_ char *message = text_escape(err->message, sizeof(err->message));
    _cleanup_free_ char *hint = text_escape(err->hint, sizeof(err->hint));
    /* getopt_long() has printed the error. */
    if (err->code == -ENOENT && strncmp(message, "Try \"", 5) == 0)
        (void)fprintf(stderr, "%s\n", message);
    else if (slurm_is_away(err))
        (void)fprintf(stderr, "%s: error: " AWAY "\n", program->name);
    else
        (void)fprintf(stderr, "%s: error: %s\n", program->name, message);
    if (hint[0] != '\0' && !slurm_is_away(err))
        (void)fprintf(stderr, "%s: error: %s\n", program->name, hint);
    return exit_status(program);
}

int slurm_fail_load(const char *what, const struct error *err)
{
    _cleanup_free_ char *message = text_escape(err->message, sizeof(err->message));
    (void)fprintf(stderr, "%s error: %s\n", what, slurm_is_away(err) ? AWAY : message);
    return 1;
}
