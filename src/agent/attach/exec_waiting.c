/* SPDX-License-Identifier: MIT */
#include "agent/attach/exec_waiting.h"

#include <stdlib.h>

#include "base/memory.h"

struct exec_waiting {
    struct message_open_step request;
    int64_t since_ms;
    struct exec_waiting *next; // the next newer one
};

static void remove_at(struct exec_waiting **where, struct message_open_step *ret)
{
    struct exec_waiting *waiting = *where;
    *where = waiting->next;
    *ret = waiting->request;
    free(waiting);
}

static void drop_oldest(struct exec_waiting **list)
{
    struct message_open_step request;
    remove_at(list, &request);
    record_clear(&message_open_step_record, &request);
}

static void drop_expired(struct exec_waiting **list, int64_t now_ms)
{
    while (*list != NULL && now_ms - (*list)->since_ms > EXEC_WAITING_MS)
        drop_oldest(list);
}

void exec_waiting_add(struct exec_waiting **list, const struct message_open_step *request, int64_t now_ms)
{
    size_t count = 0;
    struct exec_waiting **end = list;
    for (; *end != NULL; end = &(*end)->next)
        count++;
    struct exec_waiting *added = xcalloc(1, sizeof(*added));
    added->since_ms = now_ms;
    record_copy(&message_open_step_record, &added->request, request);
    *end = added;
    if (count >= EXEC_WAITING_MAX)
        drop_oldest(list);
}

bool exec_waiting_take(
    struct exec_waiting **list, const struct spool_id *id, int64_t now_ms, struct message_open_step *ret)
{
    drop_expired(list, now_ms);
    for (struct exec_waiting **where = list; *where != NULL; where = &(*where)->next) {
        if (!spool_id_equal(&(*where)->request.id, id))
            continue;
        remove_at(where, ret);
        return true;
    }
    return false;
}

void exec_waiting_free(struct exec_waiting **list)
{
    while (*list != NULL)
        drop_oldest(list);
}
