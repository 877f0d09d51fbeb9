/* SPDX-License-Identifier: MIT */
/*
 * Synchronizes the state file in both directions. Edits are read before the file is written; an invalid file
 * is reported and not overwritten. A file that is missing for a second counts as deleted; lines and pauses
 * are then discarded.
 */
#include <errno.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "compat/feed/feed.h"

#define MISSING_MS 1000 // with some editors, a file is missing for a moment

/* Adopts the pauses of a valid edited file; the next query of the GPUs compares them with the known ones.
 * False for an invalid file, which is not overwritten. */
static bool take_edits(struct feed *feed, char **text)
{
    _cleanup_json_ json_t *root = NULL;
    struct error err = { 0 };
    if (feed_state_parse(*text, strlen(*text), feed->settings->state_path, &root, &err) < 0) {
        feed_say_once(feed, &err);
        return false;
    }
    json_t *paused = json_object_get(root, "paused_gpus");
    if (paused != NULL)
        (void)json_object_set(feed->state.root, "paused_gpus", paused);
    free(feed->state.written);
    feed->state.written = take_ptr(*text);
    feed->state.is_dirty = true;
    return true;
}

static int reset(struct feed *feed, struct error *err)
{
    feed_log_say(&feed->log, "%s was deleted: all lines and pauses are reset", feed->settings->state_path);
    _cleanup_json_ json_t *instance = json_incref(json_object_get(feed->state.root, "instance"));
    int r = feed_state_reset(&feed->state, err);
    if (r < 0)
        return r;
    if (instance != NULL)
        (void)json_object_set(feed->state.root, "instance", instance);
    r = feed_gpus_sync(feed, true, err);
    if (r < 0)
        return r;
    feed_jobs_index(feed);
    feed->content = 0;
    feed->read_ms = 0;
    return feed_state_save(&feed->state, err);
}

/* Checks the file before it is written; *ret_may_write is false while it is being edited. */
static int compare_file(struct feed *feed, int64_t now, bool *ret_may_write, struct error *err)
{
    enum feed_state_compare what = FEED_STATE_SAME;
    _cleanup_free_ char *text = NULL;
    *ret_may_write = true;
    int r = feed_state_compare(&feed->state, &what, &text, err);
    if (r < 0 || what == FEED_STATE_SAME) {
        feed->missing_ms = INT64_MAX;
        return r;
    }
    if (what == FEED_STATE_EDITED) {
        *ret_may_write = take_edits(feed, &text);
        return 0;
    }
    *ret_may_write = false;
    if (feed->missing_ms == INT64_MAX)
        feed->missing_ms = now + MISSING_MS;
    if (now < feed->missing_ms)
        return 0;
    feed->missing_ms = INT64_MAX;
    return reset(feed, err);
}

/* Writes the state; if the file was edited or deleted while GPUs were queried, that is handled first. */
static int save(struct feed *feed, struct error *err)
{
    int r = feed_state_save(&feed->state, err);
    if (r != -ESTALE && r != -ENOENT)
        return r;
    feed->sync_ms = 0;
    return 0;
}

/* GPUs, pauses and the file, in both directions. */
int feed_sync(struct feed *feed, int64_t now, struct error *err)
{
    bool may_write = true;
    int r = compare_file(feed, now, &may_write, err);
    if (r == 0)
        r = feed_gpus_sync(feed, false, err);
    if (r < 0)
        return r;
    feed->sync_ms = now + feed->settings->state_ms;
    feed->is_gpu_news = false;
    return feed->state.is_dirty && may_write ? save(feed, err) : 0;
}

int feed_sync_last(struct feed *feed, struct error *err)
{
    enum feed_state_compare what = FEED_STATE_SAME;
    _cleanup_free_ char *text = NULL;
    const char *path = feed->settings->state_path;
    int r = feed_state_compare(&feed->state, &what, &text, err);
    if (r < 0)
        return r;
    if (what == FEED_STATE_MISSING || (what == FEED_STATE_EDITED && !take_edits(feed, &text))) {
        feed_log_say(&feed->log, "stopped; %s was not changed. Jobs continue", path);
        return 0;
    }
    r = feed_state_save(&feed->state, err);
    if (r == 0)
        feed_log_say(&feed->log, "stopped; the state was saved in %s. Jobs continue", path);
    return r;
}
