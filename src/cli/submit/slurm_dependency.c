/* SPDX-License-Identifier: MIT */
/* --dependency of Slurm, converted to the form of "after". */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "cli/submit/slurm_job.h"
#include "job/after.h"

/* How strict a kind is: each includes the less strict ones. Kinds that exclude each other are equally
 * strict. */
static int demand_of(const char *kind, size_t length)
{
    static const char *const kinds[] = { "start", "any" };
    for (int i = 0; i < 2; i++)
        if (strlen(kinds[i]) == length && strncmp(kinds[i], kind, length) == 0)
            return i;
    return 2;
}

/* The kind in the list for this job, and its length; NULL: none. */
static const char *find_kind(const char *list, char separator, const char *id, size_t *ret_length)
{
    size_t length = strlen(id);
    for (const char *word = list; word != NULL && word[0] != '\0';) {
        const char *next = strchr(word, separator);
        if (strncmp(word, id, length) == 0 && word[length] == ':') {
            const char *kind = word + length + 1;
            *ret_length = next != NULL ? (size_t)(next - kind) : strlen(kind);
            return kind;
        }
        word = next != NULL ? next + 1 : NULL;
    }
    return NULL;
}

/* Handles a job that is listed twice. If all must be true, the kind that includes the other remains; of
 * alternatives, the one that is included remains. False if neither includes the other. */
static bool merge_kind(const char *id, const char *kind, char separator, struct buffer *out)
{
    size_t length = 0;
    const char *before = find_kind(buffer_text(out), separator, id, &length);
    if (before == NULL || memchr(before, '+', length) != NULL)
        return false;
    bool is_same = strlen(kind) == length && strncmp(before, kind, length) == 0;
    int had = demand_of(before, length), wanted = demand_of(kind, strlen(kind));
    if (had == wanted)
        return is_same;
    if ((separator == ',') != (wanted > had))
        return true;
    struct buffer merged = { 0 };
    size_t at = (size_t)(before - buffer_text(out));
    buffer_printf(&merged, "%.*s%s%s", (int)at, buffer_text(out), kind, before + length);
    buffer_clear(out);
    *out = merged;
    return true;
}

/* "12", "12_3", "12_*" and "12+10" as "12", "12.3", "12" and "12:start+10m". */
static int add_after_job(char *id, const char *kind, const char *separator, struct buffer *out)
{
    char *plus = strcmp(kind, "start") == 0 ? strchr(id, '+') : NULL;
    const char *minutes = plus != NULL ? plus + 1 : NULL;
    if (plus != NULL)
        *plus = '\0';
    if (id[0] == '\0' || id[strspn(id, "0123456789_*")] != '\0')
        return -EINVAL;
    if (minutes != NULL && (minutes[0] == '\0' || minutes[strspn(minutes, "0123456789")] != '\0'))
        return -EINVAL;
    if (strstr(id, "_*") != NULL)
        *strchr(id, '_') = '\0';
    if (strchr(id, '_') != NULL)
        *strchr(id, '_') = '.';
    if (minutes == NULL && merge_kind(id, kind, separator[0], out))
        return 0;
    bool is_delayed = minutes != NULL && strspn(minutes, "0") != strlen(minutes);
    buffer_printf(out, "%s%s:%s%s%s%s", out->length > 0 ? separator : "", id, kind, is_delayed ? "+" : "",
        is_delayed ? minutes : "", is_delayed ? "m" : "");
    return 0;
}

static int add_after(char *words, const char *separator, struct buffer *out)
{
    static const struct {
        const char *slurm, *kind;
    } kinds[] = { { "after", "start" }, { "afterok", "ok" }, { "afterany", "any" }, { "afternotok", "fail" },
        { "aftercorr", "corr" } };
    static const char *const unsupported[] = { "expand", "afterburstbuffer" };
    char *rest = words;
    const char *name = strsep(&rest, ":"), *kind = NULL;
    if (strcmp(name, AFTER_SINGLETON) == 0 && rest == NULL) {
        buffer_printf(out, "%s%s", out->length > 0 ? separator : "", name);
        return 0;
    }
    for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); i++)
        if (strcmp(name, unsupported[i]) == 0)
            return -ENOTSUP;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(name, kinds[i].slurm) == 0)
            kind = kinds[i].kind;
    if (kind == NULL || rest == NULL)
        return -EINVAL;
    int r = 0;
    for (char *id = NULL; r == 0 && (id = strsep(&rest, ":")) != NULL;)
        r = add_after_job(id, kind, separator, out);
    return r;
}

/* Separated by commas if all are required, or by question marks if one of them suffices. */
int slurm_parse_dependency(const char *value, char **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_free_ char *copy = xstrdup(value);
    const char *separator = strchr(value, '?') != NULL ? "?" : ",";
    char *rest = copy;
    bool is_mixed = separator[0] == '?' && strchr(value, ',') != NULL;
    bool is_none = value[0] == '\0' || strcmp(value, "0") == 0; // written by scripts with an empty variable
    bool is_id = !is_none && value[strspn(value, "0123456789")] == '\0';
    if (is_id) { // the old form: after the job has ended
        *ret = xasprintf("%s:any", value);
        return 0;
    }
    for (char *one = NULL; !is_none && (one = strsep(&rest, separator)) != NULL;) {
        int r = is_mixed ? -EINVAL : add_after(one, separator, &out);
        if (r == -ENOTSUP)
            return error_set(err, r,
                "--dependency=%.80s is not supported: known are after, afterok, afterany, afternotok, "
                "aftercorr and "
                "singleton",
                value);
        if (r < 0)
            return error_set(err, -EINVAL, "Job dependency problem");
    }
    *ret = out.length > 0 ? buffer_take(&out) : NULL;
    return 0;
}
