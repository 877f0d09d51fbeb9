/* SPDX-License-Identifier: MIT */
/*
 * sreport: the resources that jobs used in a period, by cluster and by user. They are summed from the jobs
 * that mgpud still lists; downtime of nodes is not recorded.
 */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/submit/slurm_moment.h"
#include "cli/term/time_text.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/programs.h"
#include "compat/slurm/report.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/steps.h"

#define MILLI     1000
#define DAY_MS    (INT64_C(24) * 3600 * MILLI)
#define TOP_USUAL 10
#define GPU_TRES  "gres/gpu"
#define RULE      "--------------------------------------------------------------------------------"

struct sreport {
    struct report report;
    const char *unit, *tres, *start, *end, *users, *format;
    int64_t start_ms, end_ms, top;
    bool is_of_gpus;
};

/* The use of one user, or of all. */
struct share {
    const char *user;
    int64_t seconds; // of CPUs or GPUs
};

static int set_text(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct sreport *sreport = target;
    *(option->letter == 't' ? &sreport->unit : &sreport->tres) = value;
    return 0;
}

static int set_flag(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct report *report = &((struct sreport *)target)->report;
    report->is_headless |= option->letter == 'n';
    report->is_parsable |= option->letter != 'n';
    report->has_last_delimiter |= option->letter == 'p';
    return 0;
}

const struct slurm_option slurm_sreport_options[] = {
    SLURM_NO_EFFECT(SLURM_SREPORT, "all_clusters", 'a', NULL, NULL, "of all clusters"),
    SLURM_ROW(SLURM_SREPORT, "clusters", 'M', "list", slurm_set_clusters, NULL, "clusters: mgpu or all"),
    SLURM_ROW(SLURM_SREPORT, "cluster", 0, "list", slurm_set_clusters, NULL, "the same"),
    SLURM_NO_EFFECT(SLURM_SREPORT, "local", 0, NULL, NULL, "of this cluster"),
    SLURM_ROW(SLURM_SREPORT, "noheader", 'n', NULL, set_flag, NULL, "no header"),
    SLURM_ROW(SLURM_SREPORT, "parsable", 'p', NULL, set_flag, NULL, "fields, each followed by a |"),
    SLURM_ROW(SLURM_SREPORT, "parsable2", 'P', NULL, set_flag, NULL, "fields separated by a |"),
    SLURM_NO_EFFECT(SLURM_SREPORT, "quiet", 'Q', NULL, NULL, "print errors only"),
    SLURM_ROW(SLURM_SREPORT, "time", 't', "unit", set_text, NULL, "Seconds, Minutes, Hours or Percent"),
    SLURM_ROW(SLURM_SREPORT, "tres", 'T', "name", set_text, NULL, "resource to report: cpu or gres/gpu"),
    SLURM_NO_EFFECT(SLURM_SREPORT, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};

/* --- usage --- */

static int64_t moment(const json_t *job, const char *key, int64_t otherwise)
{
    const char *text = field_text(job, key);
    return text != NULL ? time_parse(text) : otherwise;
}

/* CPU or GPU seconds of the job within the period. If it was parked, its run time counts evenly: when that
 * was is not in a list. */
static int64_t seconds_of(const struct sreport *sreport, const json_t *job)
{
    int64_t start = moment(job, "started_at", INT64_MAX), end = moment(job, "ended_at", clock_wall_ms());
    int64_t ran = (int64_t)(field_number(job, "run_seconds", 0) * MILLI), whole = end - start;
    start = start < sreport->start_ms ? sreport->start_ms : start;
    end = end > sreport->end_ms ? sreport->end_ms : end;
    if (start >= end)
        return 0;
    int64_t counted =
        ran < whole ? (int64_t)((double)(end - start) * (double)ran / (double)whole) : end - start;
    return counted / MILLI * (sreport->is_of_gpus ? field_integer(job, "gpus", 0) : slurm_job_cpus(job));
}

/* Adds the attempts of requeued jobs before their last ones. */
static int add_attempts(struct client *client, json_t *jobs, struct error *err)
{
    int r = 0;
    for (size_t i = 0, count = json_array_size(jobs); r == 0 && i < count; i++) {
        _cleanup_json_ json_t *attempts = NULL;
        r = slurm_attempts_get(client, json_array_get(jobs, i), &attempts, err);
        (void)json_array_extend(jobs, attempts);
    }
    return r;
}

static int by_share(const void *a, const void *b)
{
    const struct share *first = a, *second = b;
    if (first->seconds != second->seconds)
        return first->seconds > second->seconds ? -1 : 1;
    return strcmp(first->user, second->user);
}

/* Shares of users, the largest first. The caller frees the array; names are those of `jobs`. */
static struct share *sum_up(const struct sreport *sreport, const json_t *jobs, size_t *ret_count)
{
    struct share *shares = xcalloc(json_array_size(jobs) + 1, sizeof(*shares));
    size_t index = 0, count = 0;
    const json_t *job = NULL;
    json_array_foreach(jobs, index, job)
    {
        const char *user = field_text(job, "user");
        int64_t seconds = seconds_of(sreport, job);
        size_t i = 0;
        if (user == NULL || seconds == 0 || (sreport->users != NULL && !slurm_list_has(sreport->users, user)))
            continue;
        while (i < count && strcmp(shares[i].user, user) != 0)
            i++;
        shares[i].user = user;
        shares[i].seconds += seconds;
        count += i == count;
    }
    qsort(shares, count, sizeof(*shares), by_share);
    *ret_count = count;
    return shares;
}

/* All resources, in seconds of the period. */
static int whole_seconds(
    const struct sreport *sreport, struct client *client, int64_t *ret, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    size_t index = 0;
    json_t *node = NULL;
    int64_t units = 0;
    int r = client_get(client, API_PATH "/nodes", &answer, err);
    json_array_foreach(json_object_get(answer, "nodes"), index, node) units +=
        field_integer(node, sreport->is_of_gpus ? "gpus" : "cpus", 0);
    *ret = units * ((sreport->end_ms - sreport->start_ms) / MILLI);
    return r;
}

/* --- output --- */

static const struct {
    const char *name, *title;
    int64_t seconds; // 0: a fraction of the whole
} units[] = { { "Seconds", "Seconds", 1 }, { "Minutes", "Minutes", 60 }, { "Hours", "Hours", 3600 },
    { "Percent", "Percentage of Total", 0 } };

static char *amount(const struct sreport *sreport, int64_t seconds, int64_t whole)
{
    size_t i = 0;
    while (strcmp(units[i].name, sreport->unit) != 0)
        i++;
    if (units[i].seconds == 0)
        return xasprintf("%.2f%%", whole > 0 ? 100.0 * (double)seconds / (double)whole : 0.0);
    return xasprintf("%" PRId64, (seconds + units[i].seconds / 2) / units[i].seconds);
}

static const struct report_field cluster_fields[] = { { "Cluster", NULL, 9 }, { "TRESName", "TRES Name", 14 },
    { "Allocated", NULL, 8 }, { "Down", NULL, 8 }, { "PlannedDown", "PLND Down", 8 }, { "Idle", NULL, 8 },
    { "Planned", NULL, 8 }, { "Reported", NULL, 8 }, { 0 } };
static const struct report_field user_fields[] = { { "Cluster", NULL, 9 }, { "Account", NULL, 15 },
    { "Login", NULL, 9 }, { "Proper", "Proper Name", 15 }, { "TRESName", "TRES Name", 14 },
    { "Used", NULL, 8 }, { "Energy", NULL, 8 }, { 0 } };

static const struct report_field job_fields[] = { { "Cluster", NULL, 9 }, { "Account", NULL, 9 },
    { "0-49", "0-49 CPUs", 13 }, { "50-249", "50-249 CPUs", 13 }, { "250-499", "250-499 CPUs", 13 },
    { "500-999", "500-999 CPUs", 13 }, { "1000", ">= 1000 CPUs", 13 }, { "Share", "% of cluster", 12 },
    { 0 } };

static const struct report_field reservation_fields[] = { { "Cluster", NULL, 9 }, { "Name", NULL, 9 },
    { "Start", NULL, 19 }, { "End", NULL, 19 }, { "TRESName", "TRES Name", 14 }, { "Allocated", NULL, 20 },
    { "Idle", NULL, 20 }, { 0 } };

static void print_title(const struct sreport *sreport, const char *title)
{
    size_t i = 0;
    if (sreport->report.is_headless)
        return;
    while (strcmp(units[i].name, sreport->unit) != 0)
        i++;
    _cleanup_free_ char *start = slurm_time_text(sreport->start_ms, "");
    _cleanup_free_ char *end = slurm_time_text(sreport->end_ms - MILLI, "");
    bool is_of_jobs = sreport->report.fields == job_fields;
    bool has_seconds = sreport->report.fields == user_fields || is_of_jobs;
    bool is_of_tres = sreport->is_of_gpus || sreport->report.fields == reservation_fields;
    _cleanup_free_ char *seconds =
        xasprintf(" (%" PRId64 " secs)", (sreport->end_ms - sreport->start_ms) / MILLI);
    (void)printf(RULE "\n%s %s - %s%s\n%s reported in %s%s\n" RULE "\n", title, start, end,
        has_seconds ? seconds : "", is_of_jobs ? "Time" : "Usage",
        is_of_jobs   ? ""
        : is_of_tres ? "TRES "
                     : "CPU ",
        units[i].title);
    report_print_head(&sreport->report);
}

static int print_cluster(
    struct sreport *sreport, struct client *client, const json_t *jobs, struct error *err)
{
    size_t count = 0;
    int64_t whole = 0, used = 0;
    _cleanup_free_ struct share *shares = sum_up(sreport, jobs, &count);
    int r = whole_seconds(sreport, client, &whole, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        used += shares[i].seconds;
    _cleanup_free_ char *zero = amount(sreport, 0, whole), *allocated = amount(sreport, used, whole);
    _cleanup_free_ char *idle = amount(sreport, whole > used ? whole - used : 0, whole);
    _cleanup_free_ char *all = amount(sreport, whole, whole);
    const char *const texts[] = { "mgpu", sreport->is_of_gpus ? GPU_TRES : "cpu", allocated, zero, zero, idle,
        zero, all };
    print_title(sreport, "Cluster Utilization");
    report_print_row(&sreport->report, texts);
    return 0;
}

static void print_share(
    const struct sreport *sreport, const char *user, const char *account, int64_t seconds, int64_t whole)
{
    const struct passwd *entry = user[0] != '\0' ? getpwnam(user) : NULL;
    _cleanup_free_ char *proper =
        entry != NULL ? xstrndup(entry->pw_gecos, strcspn(entry->pw_gecos, ",")) : xstrdup("");
    _cleanup_free_ char *shown = text_escape(proper, 64), *used = amount(sreport, seconds, whole);
    const char *const texts[] = { "mgpu", account, user, shown, sreport->is_of_gpus ? GPU_TRES : "cpu", used,
        "0" };
    report_print_row(&sreport->report, texts);
}

static int print_users(struct sreport *sreport, struct client *client, const json_t *jobs, struct error *err)
{
    size_t count = 0;
    int64_t whole = 0;
    _cleanup_free_ struct share *shares = sum_up(sreport, jobs, &count);
    int r = whole_seconds(sreport, client, &whole, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *title = xasprintf("Top %" PRId64 " Users", sreport->top);
    print_title(sreport, title);
    for (size_t i = 0; i < count && i < (size_t)sreport->top; i++)
        print_share(sreport, shares[i].user, "default", shares[i].seconds, whole);
    return 0;
}

/* The account, followed by its users. */
static int print_accounts(
    struct sreport *sreport, struct client *client, const json_t *jobs, struct error *err)
{
    size_t count = 0;
    int64_t whole = 0, used = 0;
    _cleanup_free_ struct share *shares = sum_up(sreport, jobs, &count);
    int r = whole_seconds(sreport, client, &whole, err);
    if (r < 0)
        return r;
    print_title(sreport, "Cluster/Account/User Utilization");
    for (size_t i = 0; i < count; i++)
        used += shares[i].seconds;
    if (used > 0)
        print_share(sreport, "", "default", used, whole);
    for (size_t i = 0; i < count; i++)
        print_share(sreport, shares[i].user, "default", shares[i].seconds, whole);
    return 0;
}

/* The time of jobs, grouped by their number of CPUs. */
static int print_sizes(struct sreport *sreport, struct client *client, const json_t *jobs, struct error *err)
{
    static const int64_t above[] = { 50, 250, 500, 1000, INT64_MAX }; // CPUs
    enum { SIZES = sizeof(above) / sizeof(above[0]) };
    int64_t seconds[SIZES] = { 0 }, whole = 0;
    size_t index = 0;
    const json_t *job = NULL;
    char *sizes[SIZES];
    json_array_foreach(jobs, index, job)
    {
        int64_t cpus = slurm_job_cpus(job), used = seconds_of(sreport, job);
        size_t i = 0;
        while (cpus >= above[i])
            i++;
        if (sreport->users == NULL || slurm_list_has(sreport->users, field_text(job, "user"))) {
            seconds[i] += used;
            whole += used;
        }
    }
    print_title(sreport, "Job Sizes");
    for (size_t i = 0; i < SIZES; i++)
        sizes[i] = amount(sreport, seconds[i], whole);
    const char *const texts[] = { "mgpu", "default", sizes[0], sizes[1], sizes[2], sizes[3], sizes[4],
        "100.00%" };
    if (whole > 0)
        report_print_row(&sreport->report, texts);
    for (size_t i = 0; i < SIZES; i++)
        free(sizes[i]);
    return 0;
}

/* mgpu's reservations have no names, and unused time is not recorded. */
static int print_reservations(
    struct sreport *sreport, struct client *client, const json_t *jobs, struct error *err)
{
    print_title(sreport, "Reservation Utilization");
    return 0;
}

/* --- which report --- */

#define JOB_USUAL         "Cluster,Account,0-49,50-249,250-499,500-999,1000,Share"
#define RESERVATION_USUAL "Cluster,Name,Start,End,TRESName,Allocated,Idle"

static const struct {
    const char *kind, *name;
    const struct report_field *fields;
    const char *format, *gpu_format;
    int (*print)(struct sreport *sreport, struct client *client, const json_t *jobs, struct error *err);
} reports[] = {
    { "cluster", "Utilization", cluster_fields, "Cluster,Allocated,Down,PlannedDown,Idle,Planned,Reported",
        "Cluster,TRESName,Allocated,Down,PlannedDown,Idle,Planned,Reported", print_cluster },
    { "cluster", "AccountUtilizationByUser", user_fields, "Cluster,Account,Login,Proper,Used,Energy",
        "Cluster,Account,Login,Proper,TRESName,Used", print_accounts },
    { "cluster", "UserUtilizationByAccount", user_fields, "Cluster,Login,Proper,Account,Used,Energy",
        "Cluster,Login,Proper,Account,TRESName,Used", print_users },
    { "job", "SizesByAccount", job_fields, JOB_USUAL, JOB_USUAL, print_sizes },
    { "reservation", "Utilization", reservation_fields, RESERVATION_USUAL, RESERVATION_USUAL,
        print_reservations },
    { "user", "TopUsage", user_fields, "Cluster,Login,Proper,Account,Used,Energy",
        "Cluster,Login,Proper,Account,TRESName,Used", print_users },
};

/* Slurm's description of each kind. */
static const struct {
    const char *kind, *valid;
} kinds[] = {
    { "cluster", "Valid cluster reports are, \"AccountUtilizationByUser\", \"UserUtilizationByAccount\", "
                 "\"UserUtilizationByWckey\", \"Utilization\", and \"WCKeyUtilizationByUser\"" },
    { "job", "Valid job reports are, \"SizesByAccount, SizesByAccountAndWcKey, and  SizesByWckey\"" },
    { "reservation", "Valid reservation reports are, \"Utilization\"" },
    { "user", "Valid user reports are, \"Top\"" },
};

static int find_report(const char *kind, const char *name, struct error *err)
{
    size_t count = sizeof(reports) / sizeof(reports[0]), length = strlen(name);
    for (size_t i = 0; i < count && length > 0; i++)
        if (strncasecmp(kind, reports[i].kind, strlen(kind)) == 0 && kind[0] != '\0' &&
            strncasecmp(name, reports[i].name, length) == 0)
            return (int)i;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strncasecmp(kind, kinds[i].kind, strlen(kind)) == 0) {
            _cleanup_free_ char *shown = text_escape(name, 60);
            (void)fprintf(stderr, "Not valid report %s\n%s\n", shown, kinds[i].valid);
            break;
        }
    return error_mark(err, SLURM_SAID, error_set(err, -EINVAL, "Not valid report %.40s %.60s", kind, name));
}

/* "start=2026-11-01", "top=5": conditions of the report. */
static int read_condition(struct sreport *sreport, const char *word, struct error *err)
{
    const char *equals = strchr(word, '=');
    const struct {
        const char *name;
        const char **text;
    } texts[] = { { "start=", &sreport->start }, { "end=", &sreport->end }, { "format=", &sreport->format },
        { "users=", &sreport->users }, { "user=", &sreport->users } };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strncasecmp(word, texts[i].name, strlen(texts[i].name)) == 0) {
            *texts[i].text = equals + 1;
            return 0;
        }
    if (strncasecmp(word, "top", 3) == 0 && equals != NULL)
        return parse_integer(equals + 1, "TopCount", 1, INT32_MAX, &sreport->top, err);
    if (strncasecmp(word, "cluster", 7) == 0 && equals != NULL)
        return slurm_set_clusters(NULL, NULL, equals + 1, err);
    return error_set(err, -EINVAL, "Unknown condition: %.60s", word);
}

/* Yesterday, unless specified. */
static int resolve_period(struct sreport *sreport, struct error *err)
{
    int64_t now_ms = clock_wall_ms(), midnight_ms = slurm_midnight_ms();
    size_t i = 0;
    int r = 0;
    sreport->end_ms = midnight_ms;
    sreport->start_ms = midnight_ms - DAY_MS;
    sreport->is_of_gpus =
        sreport->tres != NULL && strncasecmp(sreport->tres, GPU_TRES, strlen(GPU_TRES)) == 0;
    if (sreport->tres != NULL && !sreport->is_of_gpus && strcasecmp(sreport->tres, "cpu") != 0) {
        (void)error_set(err, -EINVAL, "No valid TRES given");
        return error_mark(err, SLURM_FATAL,
            error_hint(err, "--tres: %.60s is not recorded; cpu and gres/gpu are", sreport->tres));
    }
    if (sreport->start != NULL)
        r = slurm_parse_moment(
            "start", sreport->start, SLURM_PAST, now_ms, &when_local, &sreport->start_ms, err);
    if (r == 0 && sreport->start != NULL && sreport->end == NULL && sreport->start_ms >= midnight_ms)
        sreport->end_ms = now_ms;
    if (r == 0 && sreport->end != NULL)
        r = slurm_parse_moment("end", sreport->end, SLURM_PAST, now_ms, &when_local, &sreport->end_ms, err);
    if (r == 0 && sreport->start_ms >= sreport->end_ms)
        return error_set(err, -EINVAL, "the period ends before it begins");
    const char *unit = sreport->unit != NULL ? sreport->unit : "Minutes";
    while (i < sizeof(units) / sizeof(units[0]) && strncasecmp(unit, units[i].name, strlen(unit)) != 0)
        i++;
    if (unit[0] == '\0' || i == sizeof(units) / sizeof(units[0]))
        return error_set(err, -EINVAL, "--time: '%.60s' is not Seconds, Minutes, Hours or Percent", unit);
    sreport->unit = units[i].name;
    return r;
}

/* The index in `reports` of "cluster utilization", or -EINVAL with Slurm's message. */
static int choose_report(int argc, char **argv, struct error *err)
{
    bool is_kind = false;
    for (size_t i = 0; argc > 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        is_kind |= argv[0][0] != '\0' && strncasecmp(argv[0], kinds[i].kind, strlen(argv[0])) == 0;
    if (argc >= 1 && !is_kind)
        return error_mark(err, SLURM_BARE, error_set(err, -EINVAL, "invalid keyword: %.60s", argv[0]));
    if (argc == 1)
        return error_mark(
            err, SLURM_BARE, error_set(err, -EINVAL, "too few arguments for keyword:%.60s", argv[0]));
    if (argc == 0)
        return error_set(err, -EINVAL, "a report is required, such as: cluster utilization, user top");
    return find_report(argv[0], argv[1], err);
}

int slurm_run_sreport(const struct slurm_program *program, int argc, char **argv)
{
    struct sreport sreport = { .top = TOP_USUAL };
    const struct slurm_reading reading = { .program = program, .target = &sreport };
    const struct slurm_query query = { .is_quick = true, .has_ended = true };
    _cleanup_json_ json_t *jobs = NULL;
    struct error err = { 0 };
    struct client client;
    int first = 0, which = 0;
    int r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    if (r == 0 && argc == first + 1 && strcasecmp(argv[first], "version") == 0)
        return puts("slurm " SLURM_VERSION) < 0;
    if (r == 0)
        r = which = choose_report(argc - first, argv + first, &err);
    for (int i = first + 2; r >= 0 && i < argc; i++)
        r = read_condition(&sreport, argv[i], &err);
    if (r >= 0)
        r = resolve_period(&sreport, &err);
    if (r < 0)
        return slurm_fail(program, &err);
    sreport.report.fields = reports[which].fields;
    const char *usual = sreport.is_of_gpus ? reports[which].gpu_format : reports[which].format;
    r = report_read(&sreport.report, sreport.format != NULL ? sreport.format : usual, &err);
    client_init(&client, NULL, NULL);
    if (r == 0)
        r = slurm_jobs_get(&client, &query, &jobs, &err);
    if (r == 0 && jobs != NULL)
        r = add_attempts(&client, jobs, &err);
    if (r == 0)
        r = reports[which].print(&sreport, &client, jobs, &err);
    client_clear(&client);
    return r < 0 ? slurm_fail(program, &err) : 0;
}
