/* SPDX-License-Identifier: MIT */
/* Dependencies are stored as numbers of jobs, so an element of an array that has not started needs one first.
 */
#include "cli/options/ask_job.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/options/selector.h"
#include "cli/options/talk.h"

/* An element that still waits in its array becomes a job of its own, because only jobs have numbers. A dry
 * run changes nothing: for it, *ret is the array. */
static int find_element(
    struct client *client, const char *name, json_t **ret, bool *ret_waits, struct error *err)
{
    _cleanup_json_ json_t *found = NULL, *nothing = json_object();
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", name);
    _cleanup_free_ char *edit = xasprintf("%s/edit", path);
    int r = client_get(client, path, &found, err);
    *ret_waits = r == 0 && !field_is_known(found, "array_job");
    if (*ret_waits && client->is_dry && !client->is_quiet)
        talk_line("%s has not started: this shows when a job after the whole array would start", name);
    if (r == 0 && (!*ret_waits || client->is_dry))
        *ret = take_ptr(found);
    else if (r == 0)
        r = client_call(client, "POST", edit, nothing, ret, err);
    if (r != -EPERM && r != -EACCES)
        return r;
    (void)error_set(err, r, "%s has not started, and only its owner can wait for it alone", name);
    return error_hint(err, "the number before the dot names the whole array");
}

int ask_find_job(struct client *client, const char *what, char *word, int64_t *ret_id, bool *ret_is_array,
    struct error *err)
{
    _cleanup_strings_ struct strings jobs = { 0 };
    char *words[] = { word };
    struct selector selector = { 0 };
    *ret_is_array = false;
    int r = selector_parse(word, &selector, err);
    if (r == 0 && selector.first != selector.last)
        return error_set(err, -EINVAL, "%s: '%.60s' is more than one job", what, word);
    if (r == 0)
        r = selector_resolve_by(client, JOB_NAME_WAIT, false, 1, words, &jobs, err);
    if (r < 0)
        return error_wrap(err, "%s", what);
    if (strchr(jobs.items[0], '.') == NULL) {
        *ret_id = strtoll(jobs.items[0], NULL, 10);
        return 0;
    }
    _cleanup_json_ json_t *job = NULL;
    bool waits = false;
    r = find_element(client, jobs.items[0], &job, &waits, err);
    if (r < 0)
        return error_wrap(err, "%s", what);
    *ret_id = field_integer(job, "id", 0);
    *ret_is_array = waits && client->is_dry;
    return 0;
}
