/* SPDX-License-Identifier: MIT */
/* scontrol: the table of its commands, which are arguments or lines of standard input. Their functions are in
 * files of their own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/term/words.h"
#include "compat/slurm/control/scontrol_jobs.h"
#include "compat/slurm/control/scontrol_pids.h"
#include "compat/slurm/control/scontrol_show.h"
#include "compat/slurm/control/scontrol_update.h"
#include "compat/slurm/programs.h"
#include "compat/slurm/slurm.h"

struct scontrol {
    struct client client;
    struct scontrol_form form;
};

static int set_flag(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct scontrol *scontrol = target;
    scontrol->form.is_one_line |= option->letter == 'o';
    scontrol->form.has_details |= option->letter == 'd';
    scontrol->form.is_quiet |= option->letter == 'Q';
    scontrol->form.is_verbose |= option->letter == 'v';
    return 0;
}

const struct slurm_option slurm_scontrol_options[] = {
    SLURM_NO_EFFECT(SLURM_SCONTROL, "all", 'a', NULL, NULL, "hidden partitions, too"),
    SLURM_ROW(SLURM_SCONTROL, "clusters", 'M', "list", slurm_set_clusters, NULL, "clusters: mgpu or all"),
    SLURM_ROW(SLURM_SCONTROL, "details", 'd', NULL, set_flag, NULL,
        "the numbers of the GPUs of jobs, and of the allocated GPUs of nodes"),
    SLURM_NO_EFFECT(SLURM_SCONTROL, "federation", 0, NULL, NULL, "of the federation"),
    SLURM_NO_EFFECT(SLURM_SCONTROL, "future", 'F', NULL, NULL, "nodes of the future"),
    SLURM_NO_EFFECT(SLURM_SCONTROL, "hide", 0, NULL, NULL, "no hidden partitions"),
    SLURM_NO_EFFECT(SLURM_SCONTROL, "local", 0, NULL, NULL, "of this cluster"),
    SLURM_ROW(SLURM_SCONTROL, "oneliner", 'o', NULL, set_flag, NULL, "each object on one line"),
    SLURM_ROW(SLURM_SCONTROL, "quiet", 'Q', NULL, set_flag, NULL, "print errors only"),
    SLURM_NO_EFFECT(SLURM_SCONTROL, "sibling", 0, NULL, NULL, "siblings of a federation"),
    SLURM_NO_EFFECT(SLURM_SCONTROL, "uid", 'u', "user", NULL, "as this user"),
    SLURM_ROW(SLURM_SCONTROL, "verbose", 'v', NULL, set_flag, NULL, "print how many objects are shown"),
    { 0 },
};

static int ping(struct client *client)
{
    struct error err = { 0 };
    _cleanup_json_ json_t *version = NULL;
    client_hurry(client);
    bool is_up = client_get(client, API_PATH "/version", &version, &err) == 0;
    (void)printf("Slurmctld(primary) at %s is %s\n", client->host != NULL ? client->host : "localhost",
        is_up ? "UP" : "DOWN");
    return is_up ? 0 : 1;
}

/* "write batch_script 12 [FILE]". */
static int write_script(struct client *client, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    if (argc < 1)
        return scontrol_misuse(err, "too few arguments for keyword:write");
    if (argc < 2 || strcasecmp(argv[0], "batch_script") != 0)
        return scontrol_misuse(err, "invalid write argument:%.60s", argv[0]);
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s?script=1", argv[1]);
    _cleanup_free_ char *usual = xasprintf("slurm-%s.sh", argv[1]);
    const char *name = argc > 2 ? argv[2] : usual;
    int r = client_get(client, path, &job, err);
    if (r == -ENOENT || (r == 0 && field_text(job, "script") == NULL)) {
        (void)fprintf(stderr, "job script retrieval failed: Invalid job id specified\n");
        return 0; // Slurm's status
    }
    if (r < 0)
        return scontrol_complain(client, "job", argv[1], err);
    FILE *file = strcmp(name, "-") == 0 ? stdout : fopen(name, "we");
    if (file == NULL)
        return error_set(err, -errno, "failed to open file `%.200s`", name);
    r = fputs(field_text(job, "script"), file) < 0 || fflush(file) != 0 ? -errno : 0;
    if (file != stdout && fclose(file) != 0 && r == 0)
        r = -errno;
    if (r < 0)
        return error_set_errno(err, r, "failed to write file `%.200s`", name);
    if (file == stdout)
        return 0;
    (void)printf("batch script for job %s written to %s\n", argv[1], name);
    return 0;
}

/* --- the commands --- */

struct scontrol_command {
    const char *name;
    size_t least;       // minimum length of an abbreviation
    const char *action; // for actions on jobs: that of the API; NULL: `run`
    int (*run)(struct scontrol *scontrol, int argc, char **argv, struct error *err); // NULL: refused
    const char *usage, *help; // of a refused command: the reason
};

static const struct scontrol_command *all_commands(void);

static int run_show(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    if (argc < 1)
        return scontrol_misuse(err, "too few arguments for keyword:show");
    if (argc > 2)
        return scontrol_misuse(err, "too many arguments for keyword:show");
    return scontrol_show(&scontrol->client, argv[0], argc > 1 ? argv[1] : NULL, &scontrol->form, err);
}

static int run_update(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    return scontrol_update(&scontrol->client, argc, argv, err);
}

static int run_top(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    return argc > 0 ? scontrol_top(&scontrol->client, argc, argv, err)
                    : scontrol_misuse(err, "too few arguments for keyword:top");
}

static int run_wait(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    return scontrol_wait(&scontrol->client, argc, argv, err);
}

static int run_completing(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    return scontrol_completing(&scontrol->client, err);
}

static int run_listpids(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    return scontrol_list_pids(argc, argv, err);
}

static int run_pidinfo(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    return argc == 1
               ? scontrol_pid_info(&scontrol->client, argv[0], err)
               : scontrol_misuse(err, "too %s arguments for keyword:pidinfo", argc < 1 ? "few" : "many");
}

static int run_write(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    return write_script(&scontrol->client, argc, argv, err);
}

static int run_ping(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    return argc > 0 ? scontrol_misuse(err, "too many arguments for keyword:ping") : ping(&scontrol->client);
}

static int run_version(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    (void)puts("slurm " SLURM_VERSION);
    return argc > 0 ? scontrol_misuse(err, "too many arguments for version keyword") : 0;
}

/* Slurm's numbers of the messages used here; others are system errors. */
static int run_errnumstr(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    static const struct {
        int number;
        const char *sentence;
    } sentences[] = {
        { 2000, "Invalid partition name specified" },
        { 2002, "Access/permission denied" },
        { 2003, "User's group not permitted to use this partition" },
        { 2005, "More processors requested than permitted" },
        { 2006, "Node count specification invalid" },
        { 2010, "Invalid user id" },
        { 2014, "Requested node configuration is not available" },
        { 2016, "Requested nodes are busy" },
        { 2017, "Invalid job id specified" },
        { 2018, "Invalid node name specified" },
        { 2021, "Job/step already completing or completed" },
        { 2028, "Invalid node state specified" },
        { 2029, "Invalid feature specification" },
        { 2038, "Job dependency problem" },
        { 2048, "Invalid license specification" },
        { 2051, "Requested time limit is invalid (missing or exceeds some limit)" },
        { 2072, "Invalid generic resource (gres) specification" },
        { 2073, "Job is no longer pending execution" },
        { 2081, "Invalid job array specification" },
        { 2084, "Job has already finished" },
        { 2113, "Invalid group id" },
        { 2123, "Invalid --nice value" },
        { 2124, "Invalid time-min specification (exceeds job's time or other limits)" },
        { 5004, "Socket timed out on send/recv operation" },
    };
    int64_t number = 0;
    if (argc != 1)
        return scontrol_misuse(err, "one arguments required for keyword:errnumstr");
    if (parse_integer(argv[0], "number", 0, INT32_MAX, &number, NULL) < 0)
        return scontrol_misuse(err, "numeric arguments required for keyword:errnumstr");
    for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
        if (sentences[i].number == number)
            return puts(sentences[i].sentence) < 0;
    return puts(strerror((int)number)) < 0;
}

static int run_help(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    (void)puts(
        "scontrol [<OPTION>] [<COMMAND>]\nValid <COMMAND> values are: (they may be abbreviated; without one "
        "they are read from standard input)");
    for (const struct scontrol_command *row = all_commands(); row->name != NULL; row++) {
        _cleanup_free_ char *form = xasprintf("%s %s", row->name, row->usage != NULL ? row->usage : "");
        (void)printf(row->usage != NULL ? "  %-40s %s\n" : "  %-40s not here: %s\n", form, row->help);
    }
    (void)puts("  exit, quit                               end scontrol\n"
               "  !!                                       the last command again\n"
               "Options: scontrol --help");
    return 0;
}

/* The options -o, -d and -Q as commands, for those that follow. */
static int run_oneliner(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    scontrol->form.is_one_line = true;
    return 0;
}

static int run_details(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    scontrol->form.has_details = true;
    return 0;
}

static int run_quiet(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    scontrol->form.is_quiet = true;
    return 0;
}

static int run_verbose(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    scontrol->form.is_verbose = true;
    return 0;
}

static int run_nothing(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    return 0;
}

#define JOBS "JOB[,JOB...]|jobname=NAME"

static const struct scontrol_command commands[] = {
    { "abort", 5, NULL, NULL, NULL, "mgpud is a unit of systemd: systemctl stop mgpud" },
    { "all", 3, NULL, run_nothing, "", "show all partitions, as always" },
    { "completing", 2, NULL, run_completing, "", "jobs that are ending, and their nodes" },
    { "create", 2, NULL, NULL, NULL,
        "partitions are in mgpud's configuration (mgpud(8)); mgpu reserve reserves" },
    { "delete", 2, NULL, NULL, NULL,
        "partitions are in mgpud's configuration (mgpud(8)); mgpu reserve reserves" },
    { "details", 3, NULL, run_details, "", "show the GPUs of jobs and nodes by their numbers" },
    { "errnumstr", 4, NULL, run_errnumstr, "NUMBER", "the sentence with this number of Slurm's" },
    { "help", 2, NULL, run_help, "", "this list" },
    { "hide", 2, NULL, run_nothing, "", "hide nothing: no partition is hidden" },
    { "hold", 4, "hold", NULL, JOBS, "do not start these jobs" },
    { "holdu", 5, "hold", NULL, JOBS, "the same" },
    { "listpids", 1, NULL, run_listpids, "[JOB[.STEP]]", "processes of jobs on this machine" },
    { "notify", 1, NULL, NULL, NULL, "jobs get no messages; mgpu exec runs a command in a job" },
    { "oneliner", 1, NULL, run_oneliner, "", "show each object on one line" },
    { "pidinfo", 3, NULL, run_pidinfo, "PID", "the job of a process, and its end" },
    { "ping", 3, NULL, run_ping, "", "whether mgpud answers" },
    { "quiet", 4, NULL, run_quiet, "", "print no errors" },
    { "reboot", 3, NULL, NULL, NULL, "nodes are not rebooted from here" },
    { "reconfigure", 3, NULL, NULL, NULL,
        "mgpud reads its configuration again on SIGHUP: systemctl reload mgpud" },
    { "release", 3, "release", NULL, JOBS, "start jobs that are held" },
    { "requeue", 3, "requeue", NULL, "[incomplete] " JOBS,
        "put jobs back into the queue; incomplete: not those that have ended" },
    { "requeuehold", 8, "requeue", NULL, JOBS, "the same, and hold them" },
    { "resume", 3, "continue", NULL, JOBS, "continue jobs that are suspended" },
    { "setdebug", 4, NULL, NULL, NULL, "logs are the journal's: journalctl -u mgpud" },
    { "show", 2, NULL, run_show, "ENTITY [NAME]",
        "config, hostlist, hostnames, job, licenses, node, partition, reservation, step" },
    { "shutdown", 8, NULL, NULL, NULL, "mgpud is a unit of systemd: systemctl stop mgpud" },
    { "suspend", 2, "suspend", NULL, JOBS, "stop jobs, which keep their GPUs" },
    { "takeover", 8, NULL, NULL, NULL, "controllers elect their leader (docs/controllers.md)" },
    { "top", 3, NULL, run_top, "JOB[,JOB...]", "consider these jobs before your others" },
    { "uhold", 2, "hold", NULL, JOBS, "do not start these jobs" },
    { "update", 1, NULL, run_update, "KEY=VALUE...", "change a job (JobId=12) or a node (NodeName=n1)" },
    { "verbose", 4, NULL, run_verbose, "", "print how many objects are shown" },
    { "version", 4, NULL, run_version, "", "the version" },
    { "wait_job", 2, NULL, run_wait, "JOB", "until the job has its nodes" },
    { "write", 5, NULL, run_write, "batch_script JOB [FILE|-]", "the script of a job" },
    { 0 },
};

static const struct scontrol_command *all_commands(void)
{
    return commands;
}

static int run(struct scontrol *scontrol, int argc, char **argv, struct error *err)
{
    const struct scontrol_command *row = commands;
    while (row->name != NULL && !scontrol_is_word(argv[0], row->name, row->least))
        row++;
    if (row->name == NULL)
        return scontrol_misuse(err, "invalid keyword: %.60s", argv[0]);
    if (scontrol->form.is_quiet && freopen("/dev/null", "w", stderr) == NULL)
        return error_set_errno(err, -errno, "cannot open /dev/null");
    if (row->action != NULL && argc < 2)
        return scontrol_misuse(err, "too few arguments for keyword:%s", argv[0]);
    if (row->action != NULL)
        return scontrol_act(&scontrol->client, row->name, row->action, argc - 1, argv + 1, err);
    if (row->run == NULL)
        return error_set(err, -ENOTSUP, "%s: %s", row->name, row->help);
    return row->run(scontrol, argc - 1, argv + 1, err);
}

static int report_failure(
    const struct slurm_program *program, const struct scontrol *scontrol, int r, struct error *err)
{
    bool is_load = err->code == -ENOENT || slurm_away_words(err) != NULL;
    if (r >= 0)
        return r;
    return is_load ? slurm_fail_load("slurm_load_jobs", err) : slurm_fail(program, err);
}

static bool is_end(const char *word)
{
    return scontrol_is_word(word, "exit", 1) || scontrol_is_word(word, "quit", 4) || strcmp(word, "q") == 0;
}

/* Reads commands from standard input, one per line; returns the most severe status. */
static int converse(const struct slurm_program *program, struct scontrol *scontrol)
{
    _cleanup_free_ char *line = NULL, *last = NULL;
    size_t size = 0;
    int worst = 0;
    for (;;) {
        _cleanup_strings_ struct strings words = { 0 };
        struct error err = { 0 };
        (void)fputs("scontrol: ", stdout);
        (void)fflush(stdout);
        bool is_over = getline(&line, &size, stdin) < 0;
        if (!is_over)
            line[strcspn(line, "\n")] = '\0';
        if (!isatty(STDIN_FILENO)) // on a terminal, the line is already visible
            (void)puts(is_over ? "" : line);
        if (is_over)
            return worst;
        bool is_again = strncmp(line, "!!", 2) == 0 && last != NULL;
        int r = words_split_all(is_again ? last : line, &words, &err);
        if (r == 0 && words.count == 0)
            continue;
        if (r == 0 && is_end(words.items[0]))
            return worst;
        if (r == 0)
            r = run(scontrol, (int)words.count, words.items, &err);
        int status = report_failure(program, scontrol, r, &err);
        worst = status > worst ? status : worst;
        if (!is_again) {
            free(last);
            last = xstrdup(line);
        }
    }
}

int slurm_run_scontrol(const struct slurm_program *program, int argc, char **argv)
{
    struct scontrol scontrol = { 0 };
    const struct slurm_reading reading = { .program = program, .target = &scontrol };
    struct error err = { 0 };
    int first = 0;
    int r = slurm_options_from_environment(&reading, "SCONTROL", &err);
    if (r == 0)
        r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    if (r < 0)
        return slurm_fail(program, &err);
    client_init(&scontrol.client, NULL, NULL);
    if (first == argc) {
        r = converse(program, &scontrol);
    } else {
        r = run(&scontrol, argc - first, argv + first, &err);
        r = report_failure(program, &scontrol, r, &err);
    }
    client_clear(&scontrol.client);
    return r;
}
