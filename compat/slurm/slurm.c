/* SPDX-License-Identifier: MIT */
#include "compat/slurm/slurm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/api/client.h"

#define USAGE_STATUS      255
#define MESSAGE_TIMEOUT_S 10 // Slurm's default
#define MILLI             1000

static const char *const severities[SLURM_WORDS] = { [SLURM_ERROR] = "error: ",
    [SLURM_FATAL] = "fatal: ",
    [SLURM_NAMED] = "",
    [SLURM_BARE] = "",
    [SLURM_BOTH] = "error: ",
    [SLURM_LED] = "error: ",
    [SLURM_DOOMED] = "error: ",
    [SLURM_SAID] = "" };

const struct slurm_program *slurm_program_find(const char *name)
{
    const char *slash = strrchr(name, '/');
    for (const struct slurm_program *row = slurm_programs; row->name != NULL; row++)
        if (strcmp(row->name, slash != NULL ? slash + 1 : name) == 0)
            return row;
    return NULL;
}

const char *slurm_away_words(const struct error *err)
{
    if (err->code == -ETIMEDOUT)
        return "Socket timed out on send/recv operation";
    return client_is_away(err) ? "Unable to contact slurm controller (connect failure)" : NULL;
}

void slurm_message_timeout(void)
{
    const char *text = getenv("SLURM_MSG_TIMEOUT");
    int64_t seconds = MESSAGE_TIMEOUT_S;
    if (text != NULL)
        (void)parse_integer(text, "SLURM_MSG_TIMEOUT", 1, INT32_MAX / MILLI, &seconds, NULL);
    client_answer_within((int)seconds * MILLI);
}

void slurm_umask(void)
{
    const char *text = getenv("SLURM_UMASK");
    char *end = NULL;
    unsigned long mask = text != NULL ? strtoul(text, &end, 8) : 0;
    if (text != NULL && end != text && *end == '\0' && mask <= 0777)
        (void)umask((mode_t)mask);
}

/* 255 for an invalid option or value, whatever SLURM_EXIT_ERROR is, as in Slurm. */
static int exit_status(const struct slurm_program *program, bool is_usage)
{
    if (is_usage && (program->bit & SLURM_SUBMITS) != 0)
        return USAGE_STATUS;
    const char *text = (program->bit & SLURM_SUBMITS) != 0 ? getenv("SLURM_EXIT_ERROR") : NULL;
    int64_t number = 1;
    if (text != NULL)
        (void)parse_integer(text, "SLURM_EXIT_ERROR", 0, 255, &number, NULL);
    return (int)number;
}

/* The text that Slurm's submitting commands print before the message. */
static const char *what_failed(const struct slurm_program *program, const struct error *err)
{
    if ((program->bit & SLURM_SUBMITS) == 0 || err->code != -ETIMEDOUT)
        return "";
    return strcmp(program->name, "sbatch") == 0 ? "Batch job submission failed: "
                                                : "Unable to allocate resources: ";
}

/* Prints each line of the message separately. */
static void print_lines(const struct slurm_program *program, const char *severity, const char *message)
{
    _cleanup_free_ char *copy = xstrdup(message);
    char *rest = copy;
    for (char *line = NULL; (line = strsep(&rest, "\n")) != NULL;) {
        _cleanup_free_ char *shown = text_escape(line, strlen(line));
        (void)fprintf(stderr, "%s: %s%s\n", program->name, severity, shown);
    }
}

static const char *hint_words(unsigned kind)
{
    return kind == SLURM_BOTH ? "error: " : kind == SLURM_DOOMED ? "fatal: " : "note: ";
}

int slurm_wrap(struct error *err, const char *what)
{
    bool is_whole = err->kind == SLURM_FATAL || err->kind == SLURM_BOTH || err->kind == SLURM_SAID;
    return is_whole ? err->code : error_wrap(err, "%s", what);
}

int slurm_fail(const struct slurm_program *program, const struct error *err)
{
    _cleanup_free_ char *message = text_escape(err->message, sizeof(err->message));
    _cleanup_free_ char *hint = text_escape(err->hint, sizeof(err->hint));
    bool is_late = (program->bit & SLURM_SUBMITS) != 0 && err->code == -ETIMEDOUT;
    if (err->kind == SLURM_LED)
        (void)fprintf(stderr, "%s\n", hint);
    /* getopt_long() has printed the error. */
    bool is_unknown = err->code == -ENOENT && strncmp(message, "Try \"", 5) == 0;
    if (is_unknown && (program->bit & (SLURM_SACCT | SLURM_SSTAT)) != 0)
        return 1; // these print nothing else
    if (is_unknown)
        (void)fprintf(stderr, "%s\n", message);
    else if (slurm_away_words(err) != NULL)
        (void)fprintf(
            stderr, "%s: error: %s%s\n", program->name, what_failed(program, err), slurm_away_words(err));
    else if (err->kind == SLURM_BARE)
        (void)fprintf(stderr, "%s\n", message);
    else if (err->kind != SLURM_SAID)
        print_lines(program, severities[err->kind < SLURM_WORDS ? err->kind : SLURM_ERROR], err->message);
    if (is_late)
        (void)fprintf(
            stderr, "%s: error: the job may have been accepted anyway: see squeue\n", program->name);
    else if (hint[0] != '\0' && err->kind != SLURM_LED && slurm_away_words(err) == NULL)
        (void)fprintf(stderr, "%s: %s%s\n", program->name, hint_words(err->kind), hint);
    return exit_status(program, is_unknown || slurm_is_bad_value(err));
}

int slurm_check_operands(int argc, char **argv, int first, struct error *err)
{
    if (first >= argc)
        return 0;
    (void)fprintf(stderr, "sacct: error: Unknown arguments:\n");
    for (int i = first; i < argc; i++) {
        _cleanup_free_ char *shown = text_escape(argv[i], 200);
        (void)fprintf(stderr, "sacct: error:  %s\n", shown);
    }
    return error_mark(err, SLURM_SAID, error_set(err, -EINVAL, "unknown arguments"));
}

int slurm_fail_load(const char *what, const struct error *err)
{
    _cleanup_free_ char *message = text_escape(err->message, sizeof(err->message));
    (void)fprintf(
        stderr, "%s error: %s\n", what, slurm_away_words(err) != NULL ? slurm_away_words(err) : message);
    return 1;
}
