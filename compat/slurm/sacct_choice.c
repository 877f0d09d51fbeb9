/* SPDX-License-Identifier: MIT */
/* Lists of names, ranges of numbers and times: a job is listed if it meets all that are given. */
#include "compat/slurm/sacct_choice.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/submit/slurm_option.h"
#include "cli/submit/slurm_values.h"
#include "cli/term/time_text.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/sacct_columns.h"
#include "compat/slurm/state.h"
#include "job/slurm.h"

/* --- values --- */

static int read_states(struct sacct_choice *choice, struct error *err)
{
    _cleanup_free_ char *copy = choice->states != NULL ? xstrdup(choice->states) : NULL;
    char *rest = copy;
    choice->wanted_count = 0;
    for (char *word = NULL; rest != NULL && (word = strsep(&rest, ", ")) != NULL;) {
        const struct slurm_state *state = slurm_state_find(word);
        if (word[0] != '\0' && state == NULL)
            return error_mark(
                err, SLURM_FATAL, error_set(err, -EINVAL, "unrecognized job state value '%.60s'", word));
        if (state != NULL && choice->wanted_count < SACCT_STATES_MAX)
            choice->wanted[choice->wanted_count++] = state;
    }
    return 0;
}

static bool is_range(const char *text)
{
    size_t least = strspn(text, "0123456789");
    const char *most = text[least] == '-' ? text + least + 1 : text + least;
    bool has_most = text[least] == '-';
    return least > 0 && strspn(most, "0123456789") == strlen(most) && (!has_most || most[0] != '\0');
}

static int check_ranges(const struct sacct_choice *choice, struct error *err)
{
    const struct {
        const char *range, *what;
    } ranges[] = { { choice->node_range, "node" }, { choice->cpu_range, "cpu" } };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (ranges[i].range != NULL && !is_range(ranges[i].range))
            return error_set(err, -EINVAL, "Invalid numeric value \"%.60s\" for requested %s range.",
                ranges[i].range, ranges[i].what);
    return 0;
}

static int check_limits(const struct sacct_choice *choice, struct error *err)
{
    const char *const limits[] = { choice->least_limit, choice->most_limit };
    int64_t seconds = 0;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (limits[i] != NULL && slurm_parse_time("limit", limits[i], &seconds, NULL) < 0)
            return error_mark(err, SLURM_FATAL, error_set(err, -EINVAL, "Invalid time limit specification"));
    return 0;
}

static int check_groups(const struct sacct_choice *choice, struct error *err)
{
    _cleanup_free_ char *copy = choice->groups != NULL ? xstrdup(choice->groups) : NULL;
    char *rest = copy;
    for (char *word = NULL; rest != NULL && (word = strsep(&rest, ",")) != NULL;)
        if (word[0] != '\0' && word[strspn(word, "0123456789")] != '\0' && getgrnam(word) == NULL)
            return error_set(err, -EINVAL, "Invalid group id: %.60s", word);
    return 0;
}

int sacct_choice_check(struct sacct_choice *choice, struct error *err)
{
    int r = read_states(choice, err);
    if (r == 0)
        r = check_ranges(choice, err);
    if (r == 0)
        r = check_limits(choice, err);
    return r == 0 ? check_groups(choice, err) : r;
}

/* --- jobs --- */

/* True if the text of this field is in the list, or no list is given. */
static bool is_among(const char *list, slurm_text_fn *field, const json_t *job)
{
    _cleanup_free_ char *text = field(job, 0);
    return list == NULL || slurm_lists_meet(list, text);
}

/* True if the number in this field is in the range "2", "2-4". */
static bool is_within(const char *range, slurm_text_fn *field, const json_t *job)
{
    if (range == NULL)
        return true;
    _cleanup_free_ char *text = field(job, 0);
    const char *dash = strchr(range, '-');
    int64_t value = strtoll(text, NULL, 10), least = strtoll(range, NULL, 10);
    return value >= least && value <= (dash != NULL ? strtoll(dash + 1, NULL, 10) : least);
}

static bool has_limit(const struct sacct_choice *choice, const json_t *job)
{
    int64_t limit = (int64_t)field_number(job, "time_limit", 0), least = 0, most = 0;
    if (choice->least_limit == NULL) // --timelimit-max alone has no effect
        return true;
    if (slurm_parse_time("--timelimit-min", choice->least_limit, &least, NULL) < 0)
        return false;
    if (choice->most_limit == NULL)
        return limit == least;
    return slurm_parse_time("--timelimit-max", choice->most_limit, &most, NULL) == 0 && limit >= least &&
           limit <= most;
}

static bool is_of_group(const char *list, const json_t *job)
{
    return list == NULL || is_among(list, slurm_text_group, job) || is_among(list, slurm_text_gid, job);
}

static int64_t moment(const json_t *job, const char *key)
{
    const char *text = field_text(job, key);
    return text != NULL ? time_parse(text) : 0;
}

/* The time from which it could have started; 0: it could not yet. */
static int64_t eligible_from(const json_t *job)
{
    static const char *const reasons[] = { "Dependency", "JobHeldUser", "JobHeldAdmin", "BeginTime" };
    int64_t submitted = moment(job, "submitted_at"), begin = moment(job, "begin");
    for (size_t i = 0; field_is(job, "state", "queued") && i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (strcmp(slurm_reason_of(job), reasons[i]) == 0)
            return 0;
    return begin > submitted ? begin : submitted;
}

/* As compared by slurmdbd: for PENDING and RUNNING, the time for which the job was in that state; for others,
 * the time at which it ended so. */
static bool was_in_state(
    const struct sacct_choice *choice, const json_t *job, const struct slurm_state *wanted)
{
    int64_t started = moment(job, "started_at"), ended = moment(job, "ended_at");
    bool is_now = slurm_state_of(job) == wanted;
    if (wanted == slurm_state_find("PENDING")) {
        int64_t eligible = eligible_from(job), until = started != 0 ? started : ended;
        return eligible != 0 && eligible < choice->end_ms && (until != 0 ? choice->start_ms < until : is_now);
    }
    if (wanted == slurm_state_find("RUNNING"))
        return started != 0 && started < choice->end_ms && (ended != 0 ? choice->start_ms < ended : is_now);
    return is_now && (ended == 0 || (ended >= choice->start_ms && ended <= choice->end_ms));
}

bool sacct_choice_has(const struct sacct_choice *choice, const json_t *job)
{
    const char *ended = field_text(job, "ended_at"), *submitted = field_text(job, "submitted_at");
    int64_t ended_ms = ended != NULL ? time_parse(ended) : INT64_MAX;
    int64_t submitted_ms = submitted != NULL ? time_parse(submitted) : 0;
    if (choice->clusters != NULL && choice->clusters[0] != '\0' &&
        !slurm_list_has(choice->clusters, SLURM_CLUSTER) && strcasecmp(choice->clusters, "all") != 0)
        return false;
    if (ended_ms < choice->start_ms || (choice->end_ms > 0 && submitted_ms > choice->end_ms))
        return false;
    if (!is_among(choice->partitions, slurm_text_partition, job) ||
        !is_among(choice->accounts, slurm_text_account, job) || !is_among(choice->qos, slurm_text_qos, job) ||
        (choice->nodes != NULL && !slurm_job_is_on(job, choice->nodes)))
        return false;
    if (!is_among(choice->reasons, slurm_text_reason, job) ||
        !is_among(choice->keys, slurm_text_wckey, job) ||
        !is_among(choice->constraints, slurm_text_constraints, job) || !is_of_group(choice->groups, job) ||
        !is_within(choice->cpu_range, slurm_text_cpus, job) ||
        !is_within(choice->node_range, slurm_text_node_count, job) || !has_limit(choice, job))
        return false;
    bool has_state = choice->states == NULL;
    for (size_t i = 0; i < choice->wanted_count; i++)
        has_state |= was_in_state(choice, job, choice->wanted[i]);
    return has_state;
}
