/* SPDX-License-Identifier: MIT */
#include "agent/host/child_list.h"

#include "agent/host/child.h"
#include "base/memory.h"

struct entry {
    struct child_list *list;
    struct child *child;
    uint64_t served;
    struct entry *next, **where; // the list, and the pointer to this entry
};

struct child_list {
    struct event_base *base;
    struct entry *entries;
    size_t count;
};

struct child_list *child_list_new(struct event_base *base)
{
    struct child_list *list = xcalloc(1, sizeof(*list));
    list->base = base;
    return list;
}

static void entry_free(struct entry *entry)
{
    *entry->where = entry->next;
    if (entry->next != NULL)
        entry->next->where = entry->where;
    entry->list->count--;
    child_free(entry->child);
    free(entry);
}

static void on_child_end(void *arg, int status)
{
    struct entry *entry = arg;
    entry->child = NULL;
    entry_free(entry);
}

void child_list_add(struct child_list *list, int pidfd, uint64_t served)
{
    struct entry *entry = xcalloc(1, sizeof(*entry));
    *entry = (struct entry){ .list = list, .served = served, .where = &list->entries, .next = list->entries };
    if (entry->next != NULL)
        entry->next->where = &entry->next;
    list->entries = entry;
    list->count++;
    entry->child = child_watch(list->base, pidfd, on_child_end, entry);
}

size_t child_list_count(const struct child_list *list)
{
    return list->count;
}

size_t child_list_count_of(const struct child_list *list, uint64_t served)
{
    size_t count = 0;
    for (const struct entry *entry = list->entries; entry != NULL; entry = entry->next)
        count += entry->served == served;
    return count;
}

void child_list_free(struct child_list *list)
{
    if (list == NULL)
        return;
    while (list->entries != NULL)
        entry_free(list->entries);
    free(list);
}
