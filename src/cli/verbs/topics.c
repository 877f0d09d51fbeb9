/* SPDX-License-Identifier: MIT */
/*
 * The first column of time, sizes, jobs and requests has examples in the syntax of the parsers; a test parses
 * each.
 */
#include "cli/verbs/topics.h"

#include <string.h>

#include "cli/options/commands.h"
#include "cli/options/list.h"
#include "cli/show/why_text.h"

static const struct topic_row exit_rows[] = {
    { "run and wait", NULL },
    { "0-255", "the exit status of the job" },
    { "124", "the job's time limit or idle timeout, or wait --timeout, expired" },
    { "125", "mgpu itself failed, or the job's result is unknown" },
    { "126, 127", "the command could not be executed, or was not found" },
    { "128+N", "signal N killed the job: 143 cancelled, 137 also out of memory" },
    { "130", "Ctrl-C" },
    { "the other commands", NULL },
    { "0", "done" },
    { "1", "failed, or failed for some of the jobs" },
    { "2", "wrong usage, or a request that can never be satisfied" },
    { "3", "no such job, GPU or node" },
    { "4", "not allowed" },
    { "5", "mgpud cannot be reached" },
    { "6", "the job is in the wrong state, such as already ended" },
    { 0 },
};

static const struct topic_row environment_rows[] = {
    { "MGPU_SOCKET", "the socket of mgpud; also set in jobs, which can submit further jobs" },
    { "MGPU_HOST", "mgpud on another machine, as printed by mgpu token create" },
    { "MGPU_TOKEN", "the token for it; default: MGPU_TOKEN_FILE, or ~/.config/mgpu/token" },
    { "MGPU_AUTH", "munge: use MUNGE instead of a token" },
    { "NO_COLOR", "no colours; CLICOLOR_FORCE: always" },
    { "COLUMNS", "maximum width of tables" },
    { "XDG_CONFIG_HOME", "directory of mgpu/client.yaml, your defaults; default: ~/.config" },
    { "in a job", NULL },
    { "CUDA_VISIBLE_DEVICES", "its GPUs in CUDA's numbering (AMD: ROCR_ and HIP_VISIBLE_DEVICES)" },
    { "MGPU_GPUS", "its GPUs as numbered by mgpu gpus" },
    { "MGPU_NUM_GPUS", "how many" },
    { "MGPU_JOB_ID", "its number" },
    { "MGPU_JOB_NAME", "its name" },
    { "MGPU_NODE", "its node" },
    { "MGPU_ATTEMPT", "1, incremented with each requeue" },
    { "MGPU_ARRAY_INDEX", "index of an array element" },
    { 0 },
};

static const struct topic_row time_rows[] = {
    { "times: -b, --deadline, --until, --from", NULL },
    { "18:00", "the next one" },
    { "Fri 18:00", "in quotes; also today, tomorrow" },
    { "+2h", "from now" },
    { "now", "at once" },
    { "2026-11-22", "the start of that day" },
    { "2026-11-22 14:00", "in quotes" },
    { "2026-11-22T14:00:00Z", "RFC 3339; your time zone unless it has an offset" },
    { "times in the past: --since, --history", NULL },
    { "12h", "an age" },
    { "18:00", "the last one" },
    { "Fri 18:00", "the last one; also today, yesterday" },
    { "2026-11-22", "the start of that day" },
    { "durations: -t, --timeout, --for, --grace, --idle-timeout", NULL },
    { "90m", "with the units ms, s, m, h, d" },
    { "1.5h", "parts too" },
    { "3600", "a plain number is in seconds" },
    { "1:30:00", "hours:minutes:seconds" },
    { "2-00:00:00", "days-hours:minutes:seconds" },
    { 0 },
};

static const struct topic_row size_rows[] = {
    { "8G", "8 GiB; units are B, K, M, G and T, each 1024 times the previous" },
    { "8GiB", "the same" },
    { "1.5G", "parts too" },
    { "512", "a plain number is in MiB" },
    { 0 },
};

static const struct topic_row job_rows[] = {
    { "42", "its number" },
    { "42-45", "a range; numbers that do not exist are skipped" },
    { "42.3", "an element of an array" },
    { "42.0-9", "several elements" },
    { "B358D7EB", "alias of job 42, used by the commands of other schedulers" },
    { "train", "your job of that name: to show, the newest; to change, the only live one" },
    { "@", "your newest job" },
    { 0 },
};

static const struct topic_row request_rows[] = {
    { "-g 2", "two GPUs, selected by mgpu" },
    { "-g 0", "none" },
    { "-g 0.5", "half of a shared GPU" },
    { "-g 2:h200", "two GPUs of this model; 2:a100|h100 allows both" },
    { "-G 0,2-3", "exactly these, in this order" },
    { "-G gpu1:0,1;gpu2:0", "the same on several nodes; in quotes" },
    { "--gpu-allow 0-3", "any of these" },
    { "-m 8G", "8 GiB on a GPU, which can then be shared" },
    { 0 },
};

/* The table of a list, below the verb that prints it. */
static void print_columns_of(const struct command *command, FILE *out)
{
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++)
        print_columns_of(command->actions[i], out);
    if (command->list == NULL)
        return;
    (void)fprintf(out, "mgpu %s\n", command->name);
    for (const struct list_column *column = command->list->columns; column->name != NULL; column++)
        (void)fprintf(out, "  %-18s %s\n", column->name, column->help);
}

static void print_columns(FILE *out)
{
    for (size_t i = 0; commands[i] != NULL; i++)
        print_columns_of(commands[i], out);
}

static void print_aliases_of(const struct command *command, FILE *out)
{
    for (size_t i = 0; command->aliases[i] != NULL; i++)
        (void)fprintf(out, "  %-18s %s\n", command->aliases[i], command->name);
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++)
        print_aliases_of(command->actions[i], out);
}

static void print_aliases(FILE *out)
{
    for (size_t i = 0; commands[i] != NULL; i++)
        print_aliases_of(commands[i], out);
}

const struct topic topics[] = {
    { "jobs", "How to specify jobs", job_rows, "The name of an array stands for the whole array.", NULL },
    { "requests", "How to request GPUs", request_rows,
        "mgpu submit --dry-run ... shows when a job would start, without submitting it.", NULL },
    { "time", "How to write times and durations", time_rows, NULL, NULL },
    { "sizes", "How to write memory sizes", size_rows, NULL, NULL },
    { "reasons", "Why jobs wait, in the words of mgpu why and ps", NULL,
        "mgpu why JOB shows which of them apply to a job, and until when.", why_print_codes },
    { "columns", "Columns of lists, for -o and --sort", NULL,
        "-o id,state selects columns; --sort=-wait,id sorts by them, a minus reverses the order.",
        print_columns },
    { "exit-codes", "Exit statuses", exit_rows, NULL, NULL },
    { "environment", "Environment variables used by mgpu, and set in jobs", environment_rows, NULL, NULL },
    { "aliases", "Alternative command names", NULL, NULL, print_aliases },
    { 0 },
};

const struct topic *topics_find(const char *name)
{
    for (const struct topic *topic = topics; topic->name != NULL; topic++)
        if (strcmp(topic->name, name) == 0)
            return topic;
    return NULL;
}

static void print_row(const struct topic_row *row, FILE *out)
{
    if (row->meaning == NULL)
        (void)fprintf(out, "%s\n", row->word);
    else
        (void)fprintf(out, "  %-22s %s\n", row->word, row->meaning);
}

void topics_print(const struct topic *topic, FILE *out)
{
    (void)fprintf(out, "%s\n\n", topic->help);
    for (const struct topic_row *row = topic->rows; row != NULL && row->word != NULL; row++)
        print_row(row, out);
    if (topic->print != NULL)
        topic->print(out);
    if (topic->notes != NULL)
        (void)fprintf(out, "\n%s\n", topic->notes);
}
