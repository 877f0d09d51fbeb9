/* SPDX-License-Identifier: MIT */
/* scheduler start: its options, starting mgpud if necessary, and the messages before the loop begins. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "base/strings.h"
#include "compat/feed/feed.h"
#include "compat/personalities/compat_common.h"
#include "job/ask.h"

#define LLM_CONFIG    "llm_config.json"
#define PERCENT       100
#define THRESHOLD     "0.8" // no default: an option that was not given does not apply to a running mgpud
#define INTERVAL_MAX  86400
#define ATTEMPTS_MAX  101
#define WAIT_MAX      3600
#define MS_PER_SECOND 1000
#define PART_STEP     0.0001

static struct feed_settings *settings_of(void *call)
{
    return ((struct call *)call)->options;
}

static int set_part(const char *what, const char *value, const char **ret, struct error *err)
{
    char *end = NULL;
    double part = strtod(value, &end);
    if (end == value || *end != '\0' || !(part >= 0 && part <= 1))
        return error_set(err, -EINVAL, "%s: '%.60s' is not a number from 0.0 to 1.0", what, value);
    *ret = value;
    return 0;
}

static int set_mem_threshold(void *call, const char *value, struct error *err)
{
    return set_part("--mem-threshold", value, &settings_of(call)->mem_threshold, err);
}

static int set_load_threshold(void *call, const char *value, struct error *err)
{
    return set_part("--load-threshold", value, &settings_of(call)->load_threshold, err);
}

static int set_seconds(const char *what, const char *value, int64_t max, int64_t *ret_ms, struct error *err)
{
    int64_t seconds = 0;
    int r = parse_integer(value, what, 1, max, &seconds, err);
    if (r == 0)
        *ret_ms = seconds * MS_PER_SECOND;
    return r;
}

static int set_monitor_interval(void *call, const char *value, struct error *err)
{
    return set_seconds("--monitor-interval", value, INTERVAL_MAX, &settings_of(call)->monitor_ms, err);
}

static int set_state_interval(void *call, const char *value, struct error *err)
{
    return set_seconds("--state-interval", value, INTERVAL_MAX, &settings_of(call)->state_ms, err);
}

static int set_retry_wait(void *call, const char *value, struct error *err)
{
    return set_seconds("--assign-retry-wait", value, WAIT_MAX, &settings_of(call)->retry_wait_ms, err);
}

static int set_inject(void *call, const char *value, struct error *err)
{
    static const char *const words[] = { "physical", "local", "never" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(value, words[i]) == 0) {
            settings_of(call)->inject = (enum feed_inject)i;
            return 0;
        }
    return error_set(err, -EINVAL, "--inject: '%.60s' is none of physical, local and never", value);
}

static const struct option_row rows[] = {
    { 0, "gpus", "N", "use GPUs 0 to N-1 (all)", OPTION_INNER(integer, struct feed_settings, gpus),
        OPTION_RANGE(1, ASK_GPU_INDEX_MAX + 1) },
    { 0, "jobs-file", "PATH", "file with one job per line; '' for none",
        OPTION_INNER(word, struct feed_settings, jobs_path), .preset = "jobs.txt" },
    { 0, "llm-config", "PATH", "GPU requirements of models",
        OPTION_INNER(text, struct feed_settings, llm_path), .preset = LLM_CONFIG },
    { 0, "state-file", "PATH", "state file", OPTION_INNER(text, struct feed_settings, state_path),
        .preset = "gpu_scheduler_state.json" },
    { 0, "screen", NULL, "run each job in a GNU Screen session",
        OPTION_INNER(flag, struct feed_settings, is_screen) },
    { 0, "mem-threshold", "PART", "a GPU fuller than this gets no further job (default " THRESHOLD ")",
        set_mem_threshold },
    { 0, "load-threshold", "PART", "a GPU busier than this gets no further job (default " THRESHOLD ")",
        set_load_threshold },
    { 0, "monitor-interval", "S", "interval for checking the jobs file", set_monitor_interval, "30" },
    { 0, "state-interval", "S", "interval for checking the state file", set_state_interval, "20" },
    { 0, "max-assign-attempts", "N", "attempts to submit or start a job",
        OPTION_INNER(integer, struct feed_settings, max_attempts), OPTION_RANGE(1, ATTEMPTS_MAX),
        .preset = "5" },
    { 0, "assign-retry-wait", "S", "delay before the second attempt, doubled each time", set_retry_wait,
        "5" },
    { 0, "inject", "WHICH", "GPU numbers for --cuda of jobs: physical, local, never", set_inject,
        "physical" },
    { 0 },
};

/* An mgpud that is already running has its own thresholds. */
static void compare_thresholds(struct feed *feed, const json_t *config)
{
    const struct {
        const char *key, *option, *wanted;
    } thresholds[] = { { "share-max-memory", "--mem-threshold", feed->settings->mem_threshold },
        { "share-max-load", "--load-threshold", feed->settings->load_threshold } };
    size_t index = 0;
    json_t *row = NULL;
    json_array_foreach(json_object_get(config, "settings"), index, row) for (size_t i = 0; i < 2; i++)
    {
        const char *value = field_text(row, "value");
        if (thresholds[i].wanted == NULL || value == NULL || !field_is(row, "key", thresholds[i].key))
            continue;
        double part = strtod(value, NULL) / (strchr(value, '%') != NULL ? 100 : 1);
        double difference = part - strtod(thresholds[i].wanted, NULL);
        if (difference < -PART_STEP || difference > PART_STEP)
            feed_log_say(&feed->log, "%s %s has no effect: the running mgpud was started with --%s %s",
                thresholds[i].option, thresholds[i].wanted, thresholds[i].key, value);
    }
}

static double part_of(const char *threshold)
{
    const char *text = threshold != NULL ? threshold : THRESHOLD;
    return strtod(text, NULL) / (strchr(text, '%') != NULL ? PERCENT : 1);
}

static void set_daemon_words(struct feed *feed, int argc, char **argv)
{
    static const struct wording wording[] = {
        { "--share-max-memory", "--mem-threshold" },
        { "--share-max-load", "--load-threshold" },
        { "--foreign-memory", "--mem-threshold" },
        { "--foreign-load", "--load-threshold" },
        { "mgpu run ...", "scheduler start does, once it answers." },
        { 0 },
    };
    const struct feed_settings *settings = feed->settings;
    struct strings *words = &feed->daemon.words;
    strings_add(words, "mgpud");
    strings_add(words, "--listen=none");
    strings_take(words, xasprintf("--share-max-memory=%s",
                            settings->mem_threshold != NULL ? settings->mem_threshold : THRESHOLD));
    strings_take(words, xasprintf("--share-max-load=%s",
                            settings->load_threshold != NULL ? settings->load_threshold : THRESHOLD));
    /* Other programs use GPUs too: the thresholds are for everything on them. */
    strings_take(words, xasprintf("--foreign-memory=%.0f%%", PERCENT * part_of(settings->mem_threshold)));
    strings_take(words, xasprintf("--foreign-load=%.0f%%", PERCENT * part_of(settings->load_threshold)));
    compat_complete_server(feed->call, "scheduler start", COMPAT_SERVES_USER, wording, words, argc, argv);
}

/* Uses the running mgpud, or starts one with the options after "--". */
static int find_daemon(struct feed *feed, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *config = NULL;
    struct client *client = &feed->call->client;
    if (client->asked_path == NULL && client->host == NULL)
        client->asked_path = compat_find_socket(feed->call, argc, argv);
    client->is_impatient = true; // an unreachable one is not waited for: ours replaces it
    int r = client_get(client, API_PATH "/config", &config, err);
    client->is_impatient = false;
    if (r == 0) {
        feed_log_say(&feed->log, "using the mgpud at %s", client->path);
        compare_thresholds(feed, config);
        if (argc > 0)
            feed_log_say(
                &feed->log, "the options after -- are ignored: they only apply if mgpud is started here");
        return 0;
    }
    if (r != -EHOSTDOWN)
        return r;
    *err = (struct error){ 0 };
    set_daemon_words(feed, argc, argv);
    r = feed_daemon_start(&feed->daemon, err);
    if (r == 0)
        r = client_get(client, API_PATH "/config", &config, err);
    if (r == 0)
        feed_log_say(&feed->log, "mgpud was started, at %s", client->path);
    return r;
}

/* More GPUs than exist are not an error in the jobs, but may be a typing error. */
static void compare_count(struct feed *feed)
{
    _cleanup_json_ json_t *answer = NULL;
    int64_t wanted = feed->settings->gpus;
    if (wanted == 0 || client_get(&feed->call->client, API_PATH "/gpus", &answer, NULL) < 0)
        return;
    size_t count = json_array_size(json_object_get(answer, "gpus"));
    if (wanted > (int64_t)count)
        feed_log_say(&feed->log, "--gpus %" PRId64 ": there are %zu, which are used", wanted, count);
}

static void check_screen(struct feed *feed)
{
    feed->has_screen = feed_is_on_path("screen");
    if (!feed->settings->is_screen || feed->has_screen)
        return;
    struct error err = { 0 };
    (void)error_set(
        &err, -ENOENT, "GNU Screen command not found: jobs run on mgpu terminals instead (mgpu attach JOB)");
    (void)error_hint(&err, "for screen sessions: apt-get install screen, then restart");
    feed_log_problem(&feed->log, &err);
}

/* The default file is optional; if a named file does not exist, that is more likely a mistake. */
static void check_models(struct feed *feed)
{
    const char *path = feed->settings->llm_path;
    if (strcmp(path, LLM_CONFIG) != 0 && access(path, F_OK) != 0)
        feed_log_say(&feed->log, "--llm-config %.200s: %s; each job gets 1 GPU until the file exists", path,
            strerror(errno));
}

static void make_folder(const struct feed *feed)
{
    struct error err = { 0 };
    if (feed_log_folder(FEED_LOG_FOLDER, &err) < 0)
        feed_log_say(&feed->log, "%s; job logs are stored by mgpu instead: mgpu logs JOB", err.message);
}

static int run_all(struct feed *feed, int argc, char **argv, struct error *err)
{
    const struct feed_settings *settings = feed->settings;
    int r = feed_state_open(&feed->state, settings->state_path, &feed->is_fresh, err);
    if (r == 0 && feed->is_fresh)
        r = feed_state_save(&feed->state, err);
    if (r == 0)
        r = find_daemon(feed, argc, argv, err);
    if (r < 0)
        return r;
    compare_count(feed);
    check_screen(feed);
    check_models(feed);
    make_folder(feed);
    feed_jobs_index(feed);
    return feed_run(feed, err);
}

static int start(struct call *call, int argc, char **argv, struct error *err)
{
    struct feed feed = {
        .call = call, .settings = call->options, .hashes = json_object(), .news = json_object()
    };
    feed.events = (struct feed_events){ .take = feed_jobs_note_event, .arg = &feed };
    feed_daemon_init(&feed.daemon);
    int r = feed_log_open(&feed.log, call->is_quiet, err);
    if (r == 0)
        r = run_all(&feed, argc, argv, err);
    if (r < 0)
        feed_log_keep(&feed.log, err);
    feed_daemon_clear(&feed.daemon);
    feed_events_close(&feed.events);
    feed_outputs_clear(&feed.outputs);
    feed_lines_clear(&feed);
    feed_llm_clear(&feed.llm);
    feed_state_clear(&feed.state);
    feed_log_close(&feed.log);
    json_decref(feed.hashes);
    json_decref(feed.news);
    json_decref(feed.reported);
    json_decref(feed.in_file);
    return r;
}

const struct command feed_start_command = {
    .name = "start",
    .usage = "[OPTIONS] [-- OPTION OF mgpud...]",
    .help = "Submit the lines of a file as jobs, as they are added, until Ctrl-C",
    .detail = "If no mgpud is running, it starts one and stops it on exit. Jobs continue, and the next start "
              "takes\n"
              "them over. A line is priority,script_path,conda_env,arguments,allowed_gpus.",
    .tables = { rows },
    .options_size = sizeof(struct feed_settings),
    .stops_at_operand = true,
    .run = start,
};
