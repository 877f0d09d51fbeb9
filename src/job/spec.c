/* SPDX-License-Identifier: MIT */
/*
 * The field table below is the only definition of a request: the API's JSON, the bytes in the store and the
 * bytes in a launch frame are all derived from it. A new option is a row here (or, if the scheduler needs it,
 * in job/ask.h), a check and a CLI option.
 */
#include "job/spec.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/private_places.h"
#include "job/image.h"

#define TAG_SUBMIT_KEY 12

#define NAME_FIELD RECORD_FIELD(3, RECORD_STRING, struct job_spec, name, SPEC_NAME_MAX)
#define ASK_FIELDS JOB_ASK_FIELDS(offsetof(struct job_spec, ask))

static const struct record_field spec_fields[] = {
    RECORD_FIELD(1, RECORD_STRINGS, struct job_spec, command, SPEC_COMMAND_MAX),
    RECORD_FIELD(2, RECORD_ENV, struct job_spec, env, SPEC_ENV_MAX),
    NAME_FIELD,
    RECORD_FIELD(4, RECORD_STRING, struct job_spec, cwd, SPEC_PATH_MAX),
    RECORD_FIELD(84, RECORD_STRING, struct job_spec, cwd_fallback, SPEC_PATH_MAX),
    RECORD_FIELD(5, RECORD_STRING, struct job_spec, setup, SPEC_SETUP_MAX),
    RECORD_FIELD(6, RECORD_STRING, struct job_spec, output, SPEC_PATH_MAX),
    RECORD_FIELD(91, RECORD_STRING, struct job_spec, error, SPEC_PATH_MAX),
    RECORD_FIELD(92, RECORD_STRING, struct job_spec, input, SPEC_PATH_MAX),
    RECORD_FIELD(93, RECORD_BOOL, struct job_spec, truncate, 0),
    ASK_FIELDS,
    RECORD_FIELD(11, RECORD_U32, struct job_spec, umask, 0),
    RECORD_FIELD(TAG_SUBMIT_KEY, RECORD_STRING, struct job_spec, submit_key, SPEC_NAME_MAX),
    RECORD_FIELD(13, RECORD_BOOL, struct job_spec, hold, 0),
    RECORD_FIELD(55, RECORD_BOOL, struct job_spec, tty, 0),
    RECORD_FIELD(56, RECORD_U32, struct job_spec, tty_rows, 0),
    RECORD_FIELD(57, RECORD_U32, struct job_spec, tty_columns, 0),
    RECORD_FIELD(67, RECORD_STRING, struct job_spec, image, IMAGE_NAME_MAX),
    RECORD_FIELD(68, RECORD_STRINGS, struct job_spec, image_mounts, IMAGE_MOUNTS_MAX),
    RECORD_FIELD(69, RECORD_STRING, struct job_spec, image_runtime, SPEC_NAME_MAX),
    RECORD_FIELD(66, RECORD_STRING, struct job_spec, script, SPEC_SCRIPT_MAX),
};

const struct record_type job_spec_record = RECORD_TYPE(1, "job spec", struct job_spec, spec_fields);

/* What can change after the submit. */
static const struct record_field editable_fields[] = { NAME_FIELD, ASK_FIELDS };
const struct record_type job_spec_editable_record =
    RECORD_TYPE(2, "job spec", struct job_spec, editable_fields);

bool job_spec_is_interactive(const struct job_spec *spec)
{
    return spec->tty || text_equal(spec->input, SPEC_INPUT_SENT);
}

void job_spec_init(struct job_spec *spec)
{
    *spec = (struct job_spec){ .umask = 022 };
    job_ask_init(&spec->ask);
}

static int check_text(const char *what, const char *text, size_t limit, struct error *err)
{
    if (text == NULL)
        return 0;
    if (text[0] == '\0')
        return error_set(err, -EINVAL, "%s is empty", what);
    if (strlen(text) > limit)
        return error_set(err, -E2BIG, "%s has %zu bytes; at most %zu", what, strlen(text), limit);
    return 0;
}

static int check_printable(const char *what, const char *text, struct error *err)
{
    for (const char *p = text; p != NULL && *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return error_set(
                err, -EINVAL, "%s contains a control character (byte 0x%02x)", what, (unsigned)*p);
    return 0;
}

static int check_list(const char *what, const struct strings *list, size_t limit, struct error *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < list->count; i++)
        bytes += strlen(list->items[i]) + 1;
    if (bytes > limit)
        return error_set(err, -E2BIG, "%s has %zu bytes; at most %zu", what, bytes, limit);
    return 0;
}

static int check_env(const struct strings *env, struct error *err)
{
    for (size_t i = 0; i < env->count; i++) {
        const char *equals = strchr(env->items[i], '=');
        if (equals == NULL || equals == env->items[i])
            return error_set(err, -EINVAL, "env: '%.60s' is not NAME=value", env->items[i]);
    }
    return check_list("env", env, SPEC_ENV_MAX, err);
}

static int check_image(const struct job_spec *spec, struct error *err)
{
    int r = spec->image != NULL ? image_check_name(spec->image, err) : 0;
    if (r == 0 && spec->image_runtime != NULL)
        r = image_check_runtime(spec->image_runtime, err);
    if (r == 0 && spec->image == NULL && (spec->image_mounts.count > 0))
        return error_set(err, -EINVAL, "image_mounts requires an image");
    for (size_t i = 0; r == 0 && i < spec->image_mounts.count; i++) {
        struct image_mount mount = { 0 };
        r = image_mount_parse(spec->image_mounts.items[i], &mount, err);
        image_mount_clear(&mount);
    }
    return r == 0 ? check_list("image_mounts", &spec->image_mounts, IMAGE_MOUNTS_MAX, err) : r;
}

int job_spec_check_fallback(const char *what, const char *value, struct error *err)
{
    if (value[0] == '/' || strcmp(value, SPEC_CWD_HOME) == 0 || strcmp(value, SPEC_CWD_TMP) == 0)
        return 0;
    (void)error_set(err, -EINVAL, "%s: '%.60s' is not a fallback directory", what, value);
    return error_hint(err, "use home, tmp or an absolute path");
}

/* `what` is the path, relative to the directory of the job or absolute. */
static int check_kept(const char *what, const char *path, const char *advice, struct error *err)
{
    const char *place = path != NULL && path[0] == '/' ? private_place_of(path) : NULL;
    if (place == NULL)
        return 0;
    (void)error_set(err, -EINVAL, "%s %s is in %s, and the job has a private %s that is removed when it ends",
        what, path, place, place);
    return error_hint(err, "%s", advice);
}

int job_spec_check_private_tmp(const struct job_spec *spec, struct error *err)
{
    static const char other[] = "name one in another directory";
    int r = spec->cwd_fallback == NULL || private_place_of(spec->cwd_fallback) != NULL
                ? check_kept("the working directory", spec->cwd, "use -C DIR with another directory", err)
                : 0;
    if (r == 0)
        r = check_kept("the output file", spec->output, other, err);
    if (r == 0)
        r = check_kept("the file of standard error", spec->error, other, err);
    return r == 0 ? check_kept("the file of standard input", spec->input, other, err) : r;
}

/* One client sends it to one process. */
static int check_sent_input(const struct job_spec *spec, struct error *err)
{
    if (!job_spec_has_sent_input(spec))
        return 0;
    if (spec->tty)
        return error_set(err, -EINVAL,
            "input: a job on a terminal reads from it; '%s' is for jobs without a terminal", SPEC_INPUT_SENT);
    if (spec->ask.array != NULL)
        return error_set(
            err, -EINVAL, "input: '%s' cannot be sent to many jobs; name a file", SPEC_INPUT_SENT);
    return 0;
}

/* The log of standard error has its name from the default one. */
static int check_split_log(const struct job_spec *spec, struct error *err)
{
    if (!spec->ask.split_log)
        return 0;
    if (spec->tty)
        return error_set(
            err, -EINVAL, "split_log: on a terminal, standard error is not separate from standard output");
    if (spec->output == NULL && spec->error == NULL)
        return 0;
    (void)error_set(err, -EINVAL, "split_log: the job has a file for its %s",
        spec->error != NULL ? "standard error" : "output");
    return error_hint(
        err, "--output and --error together name two files; --split-log is for jobs without them");
}

int job_spec_validate(const struct job_spec *spec, struct error *err)
{
    if (spec->command.count == 0 || spec->command.items[0][0] == '\0') {
        (void)error_set(err, -EINVAL, "no command was given");
        return error_hint(err, "mgpu submit -- python train.py");
    }
    bool is_run = spec->ask.adopted_pid == 0; // otherwise there is no command, and no space for one
    if (is_run && (spec->cwd == NULL || spec->cwd[0] != '/'))
        return error_set(err, -EINVAL, "cwd must be an absolute path");
    if (spec->umask > 0777)
        return error_set(err, -ERANGE, "umask: %o is outside 0 to 777", spec->umask);
    if (spec->tty_rows > SPEC_TTY_MAX || spec->tty_columns > SPEC_TTY_MAX)
        return error_set(err, -ERANGE, "the terminal has %u rows and %u columns; at most %u of each",
            spec->tty_rows, spec->tty_columns, SPEC_TTY_MAX);
    if (spec->ask.tty_idle_ms > 0 && !spec->tty) {
        (void)error_set(err, -EINVAL, "tty_idle requires a terminal");
        return error_hint(err, "use -T for a terminal, or omit --tty-idle");
    }
    int r = check_split_log(spec, err);
    if (r == 0)
        r = check_list("command", &spec->command, SPEC_COMMAND_MAX, err);
    if (r == 0)
        r = check_env(&spec->env, err);
    const struct {
        const char *what;
        const char *text;
        size_t limit;
    } texts[] = {
        { "name", spec->name, SPEC_NAME_MAX },
        { "cwd", spec->cwd, SPEC_PATH_MAX },
        { "cwd_fallback", spec->cwd_fallback, SPEC_PATH_MAX },
        { "setup", spec->setup, SPEC_SETUP_MAX },
        { "script", spec->script, SPEC_SCRIPT_MAX },
        { "output", spec->output, SPEC_PATH_MAX },
        { "error", spec->error, SPEC_PATH_MAX },
        { "input", spec->input, SPEC_PATH_MAX },
        { "submit_key", spec->submit_key, SPEC_NAME_MAX },
    };
    for (size_t i = 0; r == 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
        r = check_text(texts[i].what, texts[i].text, texts[i].limit, err);
    if (r == 0 && spec->cwd_fallback != NULL)
        r = job_spec_check_fallback("cwd_fallback", spec->cwd_fallback, err);
    if (r == 0)
        r = check_printable("name", spec->name, err);
    if (r == 0)
        r = check_image(spec, err);
    if (r == 0)
        r = check_sent_input(spec, err);
    return r == 0 ? job_ask_validate(&spec->ask, err) : r;
}

bool job_spec_has_sent_input(const struct job_spec *spec)
{
    return spec->input != NULL && strcmp(spec->input, SPEC_INPUT_SENT) == 0;
}

char *job_spec_display_name(const struct job_spec *spec)
{
    if (spec->name != NULL)
        return xstrdup(spec->name);
    const char *word = spec->command.count > 0 ? spec->command.items[0] : "";
    const char *slash = strrchr(word, '/');
    return text_escape_fit(slash != NULL && slash[1] != '\0' ? slash + 1 : word, SPEC_NAME_MAX);
}

/* FNV-1a; takes the key out of the bytes. */
static uint64_t hash_keyless(struct buffer *bytes)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    record_cut(bytes, TAG_SUBMIT_KEY);
    for (size_t i = 0; i < bytes->length; i++)
        hash = (hash ^ bytes->bytes[i]) * 0x100000001b3ULL;
    return hash;
}

uint64_t job_spec_hash(const struct job_spec *spec)
{
    struct job_spec shown = *spec;
    if (spec->ask.adopted_pid != 0) {
        shown.command = (struct strings){ 0 };
        shown.ask.gpus = 0;
        shown.ask.gpu_ids = NULL;
        shown.ask.adopted_start = 0;
        shown.ask.adopted_boot = NULL;
    }
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&job_spec_record, &shown, &bytes);
    return hash_keyless(&bytes);
}

static struct spec_bytes *make_bytes(const void *encoded, size_t length)
{
    struct spec_bytes *bytes = xcalloc(1, sizeof(*bytes) + length);
    bytes->users = 1;
    bytes->length = length;
    if (length > 0)
        memcpy(bytes->bytes, encoded, length);
    return bytes;
}

int spec_bytes_read(const void *bytes, size_t length, struct spec_bytes **ret, struct error *err)
{
    struct job_spec spec;
    int r = record_decode(&job_spec_record, bytes, length, &spec, err);
    if (r < 0)
        return r;
    job_spec_clear(&spec);
    *ret = make_bytes(bytes, length);
    return 0;
}

struct spec_bytes *spec_bytes_new(const struct job_spec *spec)
{
    _cleanup_buffer_ struct buffer encoded = { 0 };
    if (spec != NULL)
        record_encode(&job_spec_record, spec, &encoded);
    struct spec_bytes *bytes = make_bytes(encoded.bytes, encoded.length);
    if (spec == NULL || spec->submit_key == NULL)
        return bytes;
    bytes->submit_key = xstrdup(spec->submit_key);
    bytes->hash = spec->ask.adopted_pid != 0 ? job_spec_hash(spec) : hash_keyless(&encoded);
    return bytes;
}

struct spec_bytes *spec_bytes_hold(struct spec_bytes *bytes)
{
    if (bytes != NULL)
        (void)__atomic_add_fetch(&bytes->users, 1, __ATOMIC_RELAXED);
    return bytes;
}

void spec_bytes_drop(struct spec_bytes *bytes)
{
    if (bytes == NULL || __atomic_sub_fetch(&bytes->users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    free(bytes->submit_key);
    free(bytes);
}

void spec_bytes_dropp(struct spec_bytes **bytes)
{
    spec_bytes_drop(*bytes);
}

struct job_spec *spec_bytes_decode(const struct spec_bytes *bytes)
{
    _cleanup_free_ struct job_spec *spec = xcalloc(1, sizeof(*spec));
    bool is_read = bytes != NULL && bytes->length > 0 &&
                   record_decode(&job_spec_record, bytes->bytes, bytes->length, spec, NULL) == 0;
    return is_read ? take_ptr(spec) : NULL;
}

void spec_bytes_pack(
    const struct spec_bytes *bytes, char *name, const struct job_ask *ask, struct record_bytes *ret)
{
    const struct job_spec now = { .name = name, .ask = *ask };
    *ret = (struct record_bytes){ 0 };
    if (bytes->length > 0)
        record_repack(bytes->bytes, &job_spec_editable_record, &now, ret);
}

void job_spec_clear(struct job_spec *spec)
{
    record_clear(&job_spec_record, spec);
}

void job_spec_free(struct job_spec *spec)
{
    if (spec == NULL)
        return;
    job_spec_clear(spec);
    free(spec);
}
