/* SPDX-License-Identifier: MIT */
/*
 * A treap with parent pointers. In order: (rank, submit time of the head, id of the head). By height: `heap`,
 * a bijective hash of the class's number, so all are different and deterministic. Expected depth is about 1.4
 * log2(classes).
 *
 * Every node has the set of needs in its subtree as bits: an offer is compared with each distinct need once,
 * not with each class. Needs beyond the first few share one bit; for them a node has the minimum of the needs
 * below it. The minimum of each resource may come from different classes, so it can suggest a match where
 * there is none, never the reverse: queue_seek() may search a subtree in vain but never skips a match.
 */
#include "sched/queue/queue_tree.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static bool is_before(const struct queue_class *a, const struct queue_class *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank;
    if (a->first->submit_ms != b->first->submit_ms)
        return a->first->submit_ms < b->first->submit_ms;
    return a->first->job < b->first->job;
}

#define LESS_OF(a, b) ((a) < (b) ? (a) : (b))

static void join_child(struct queue_class *class, const struct queue_class *child)
{
    if (child == NULL)
        return;
    class->size += child->size;
    class->jobs += child->jobs;
    class->has_fresh = class->has_fresh || child->has_fresh;
    class->kinds |= child->kinds;
    class->least_horizon_ms = LESS_OF(class->least_horizon_ms, child->least_horizon_ms);
    class->oldest_ms = LESS_OF(class->oldest_ms, child->oldest_ms);
    class->oldest_fixed_ms = LESS_OF(class->oldest_fixed_ms, child->oldest_fixed_ms);
    struct node_need *least = &class->least;
    const struct node_need *other = &child->least;
    least->whole = LESS_OF(least->whole, other->whole);
    least->share = LESS_OF(least->share, other->share);
    least->part = LESS_OF(least->part, other->part);
    least->gpu_mem = LESS_OF(least->gpu_mem, other->gpu_mem);
    least->cpu_milli = LESS_OF(least->cpu_milli, other->cpu_milli);
    least->memory = LESS_OF(least->memory, other->memory);
    least->gpus = LESS_OF(least->gpus, other->gpus);
    least->models = least->models == 0 || other->models == 0 ? 0 : least->models | other->models;
}

/* Computes the aggregates of a subtree from the node and its children. */
static void sum_up(struct queue_class *class)
{
    class->size = 1;
    class->jobs = class->length;
    class->has_fresh = class->is_fresh;
    class->least = class->need;
    class->kinds = 1ULL << class->kind;
    class->least_horizon_ms = class->horizon_ms;
    class->oldest_ms = class->first != NULL ? class->first->submit_ms : INT64_MAX;
    class->oldest_fixed_ms = class->key.is_preemptible ? INT64_MAX : class->oldest_ms;
    join_child(class, class->left);
    join_child(class, class->right);
}

static void sum_up_to_root(struct queue_class *class)
{
    for (; class != NULL; class = class->parent)
        sum_up(class);
}

/* --- kinds --- */

static bool need_equal(const struct node_need *a, const struct node_need *b)
{
    return a->whole == b->whole && a->share == b->share && a->part == b->part && a->gpu_mem == b->gpu_mem &&
           a->cpu_milli == b->cpu_milli && a->memory == b->memory && a->models == b->models &&
           a->gpus == b->gpus;
}

static void leave_kind(struct queue *queue, const struct queue_class *class)
{
    if (class->kind < QUEUE_KINDS)
        queue->kinds[class->kind].classes--;
}

static void enter_kind(struct queue *queue, struct queue_class *class)
{
    unsigned free = QUEUE_KINDS;
    for (unsigned i = 0; i < QUEUE_KINDS; i++) {
        struct queue_kind *kind = &queue->kinds[i];
        if (kind->classes > 0 && need_equal(&kind->need, &class->need)) {
            kind->classes++;
            class->kind = i;
            return;
        }
        if (kind->classes == 0 && free == QUEUE_KINDS)
            free = i;
    }
    class->kind = free;
    if (free == QUEUE_KINDS)
        return;
    queue->kinds[free] = (struct queue_kind){ .need = class->need, .classes = 1 };
    queue->kinds_version++;
}

/* To be called when its need may have changed. */
static void update_kind(struct queue *queue, struct queue_class *class)
{
    if (class->kind < QUEUE_KINDS && need_equal(&queue->kinds[class->kind].need, &class->need))
        return;
    leave_kind(queue, class);
    enter_kind(queue, class);
}

/* --- the tree --- */

static struct queue_class **link_to(struct queue *queue, const struct queue_class *class)
{
    if (class->parent == NULL)
        return &queue->root;
    return class->parent->left == class ? &class->parent->left : &class->parent->right;
}

/* Puts a class in its parent's place and the parent below it. The parent's sums are valid afterwards, those
 * of the class are not. */
static void rotate_up(struct queue *queue, struct queue_class *class)
{
    struct queue_class *parent = class->parent, *between;
    *link_to(queue, parent) = class;
    class->parent = parent->parent;
    parent->parent = class;
    if (parent->left == class) {
        between = class->right;
        parent->left = between;
        class->right = parent;
    } else {
        between = class->left;
        parent->right = between;
        class->left = parent;
    }
    if (between != NULL)
        between->parent = parent;
    sum_up(parent);
}

void queue_tree_insert(struct queue *queue, struct queue_class *class)
{
    assert(class->size == 0 && class->first != NULL);
    enter_kind(queue, class);
    struct queue_class **link = &queue->root, *parent = NULL;
    while (*link != NULL) {
        parent = *link;
        link = is_before(class, parent) ? &parent->left : &parent->right;
    }
    *link = class;
    class->parent = parent;
    class->left = class->right = NULL;
    while (class->parent != NULL && class->parent->heap < class->heap)
        rotate_up(queue, class);
    sum_up_to_root(class);
}

void queue_tree_remove(struct queue *queue, struct queue_class *class)
{
    assert(class->size > 0);
    while (class->left != NULL && class->right != NULL)
        rotate_up(queue, class->left->heap > class->right->heap ? class->left : class->right);
    struct queue_class *child = class->left != NULL ? class->left : class->right;
    *link_to(queue, class) = child;
    if (child != NULL)
        child->parent = class->parent;
    sum_up_to_root(class->parent);
    class->parent = class->left = class->right = NULL;
    class->size = 0;
    leave_kind(queue, class);
}

/* The class next to this one in order of rank; `queue_next` is its mirror image. */
static const struct queue_class *class_before(const struct queue_class *class)
{
    if (class->left != NULL) {
        for (class = class->left; class->right != NULL;)
            class = class->right;
        return class;
    }
    while (class->parent != NULL && class->parent->left == class)
        class = class->parent;
    return class->parent;
}

void queue_tree_restore(struct queue *queue, struct queue_class *class)
{
    const struct queue_class *before = class_before(class), *after = queue_next(class);
    if ((before == NULL || is_before(before, class)) && (after == NULL || is_before(class, after))) {
        update_kind(queue, class);
        sum_up_to_root(class);
        return;
    }
    queue_tree_remove(queue, class);
    queue_tree_insert(queue, class);
}

uint64_t queue_tree_jobs_before(const struct queue *queue, const struct queue_class *class)
{
    uint64_t jobs = 0;
    for (const struct queue_class *at = queue->root; at != NULL;) {
        if (at != class && is_before(at, class)) {
            jobs += at->length + (at->left != NULL ? at->left->jobs : 0);
            at = at->right;
        } else {
            at = at->left;
        }
    }
    return jobs;
}

struct queue_class *queue_first(const struct queue *queue)
{
    struct queue_class *class = queue->root;
    while (class != NULL && class->left != NULL)
        class = class->left;
    return class;
}

struct queue_class *queue_first_from(const struct queue *queue, double rank)
{
    struct queue_class *found = NULL, *class = queue->root;
    while (class != NULL) {
        bool is_behind = class->rank >= rank;
        found = is_behind ? class : found;
        class = is_behind ? class->left : class->right;
    }
    return found;
}

int64_t queue_oldest_ms(const struct queue *queue, bool is_preemptible)
{
    if (queue->root == NULL)
        return INT64_MAX;
    return is_preemptible ? queue->root->oldest_ms : queue->root->oldest_fixed_ms;
}

struct queue_class *queue_next(const struct queue_class *class)
{
    if (class->right != NULL) {
        struct queue_class *next = class->right;
        while (next->left != NULL)
            next = next->left;
        return next;
    }
    while (class->parent != NULL && class->parent->right == class)
        class = class->parent;
    return class->parent;
}

/* --- seeking --- */

#define OTHER_KINDS (1ULL << QUEUE_KINDS)

/* Compares the offers with all needs. The bit shared by needs without their own is always set. */
static void prepare(const struct queue *queue, struct queue_search *search)
{
    assert(search->n_offers <= QUEUE_OFFERS_MAX);
    search->version = queue->kinds_version;
    search->any = search->n_offers > 0 ? OTHER_KINDS : 0;
    for (size_t i = 0; i < search->n_offers; i++) {
        const struct queue_offer *offer = &search->offers[i];
        search->brief[i] = 0;
        for (unsigned k = 0; k < QUEUE_KINDS; k++) {
            const struct queue_kind *kind = &queue->kinds[k];
            if (kind->classes == 0)
                continue;
            search->any |= (uint64_t)offer_meets(&offer->any, &kind->need) << k;
            search->brief[i] |= (uint64_t)offer_meets(&offer->brief, &kind->need) << k;
        }
    }
}

static bool is_helped(const struct queue_search *search, const struct node_need *need, int64_t horizon_ms)
{
    for (size_t i = 0; i < search->n_offers; i++) {
        const struct queue_offer *offer = &search->offers[i];
        if (offer_meets(&offer->any, need) ||
            (horizon_ms <= offer->window_ms && offer_meets(&offer->brief, need)))
            return true;
    }
    return false;
}

/* Some of these kinds, with that horizon and least need, may be helped. */
static bool may_help(
    const struct queue_search *search, uint64_t kinds, const struct node_need *least, int64_t horizon_ms)
{
    if ((kinds & search->any & ~OTHER_KINDS) != 0)
        return true;
    for (size_t i = 0; i < search->n_offers; i++)
        if ((kinds & search->brief[i]) != 0 && horizon_ms <= search->offers[i].window_ms)
            return true;
    return (kinds & search->any) != 0 && is_helped(search, least, horizon_ms);
}

static bool is_wanted(const struct queue_search *search, const struct queue_class *class)
{
    return class->is_fresh || may_help(search, 1ULL << class->kind, &class->need, class->horizon_ms);
}

/* The first matching class of a subtree. The depth of recursion is that of the tree. */
static struct queue_class *first_wanted(const struct queue_search *search, struct queue_class *class)
{
    for (; class != NULL; class = class->right) {
        ++*search->work;
        if (!class->has_fresh && !may_help(search, class->kinds, &class->least, class->least_horizon_ms))
            return NULL;
        struct queue_class *found = first_wanted(search, class->left);
        if (found != NULL)
            return found;
        if (is_wanted(search, class))
            return class;
    }
    return NULL;
}

struct queue_class *queue_seek(
    const struct queue *queue, const struct queue_class *after, struct queue_search *search)
{
    if (search->version != queue->kinds_version)
        prepare(queue, search);
    if (after == NULL)
        return first_wanted(search, queue->root);
    struct queue_class *found = first_wanted(search, after->right);
    for (; found == NULL && after->parent != NULL; after = after->parent) {
        ++*search->work;
        if (after->parent->right == after)
            continue;
        if (is_wanted(search, after->parent))
            return after->parent;
        found = first_wanted(search, after->parent->right);
    }
    return found;
}

static int check_sums(const struct queue_class *class, struct error *err)
{
    struct queue_class fresh = *class;
    sum_up(&fresh);
    const struct node_need *a = &fresh.least, *b = &class->least;
    if (fresh.size != class->size || fresh.jobs != class->jobs || fresh.has_fresh != class->has_fresh ||
        fresh.kinds != class->kinds || fresh.least_horizon_ms != class->least_horizon_ms ||
        fresh.oldest_ms != class->oldest_ms || fresh.oldest_fixed_ms != class->oldest_fixed_ms ||
        a->whole != b->whole || a->share != b->share || a->part != b->part || a->gpu_mem != b->gpu_mem ||
        a->cpu_milli != b->cpu_milli || a->memory != b->memory || a->gpus != b->gpus ||
        a->models != b->models)
        return error_set(err, -EPROTO, "queue class %lu: the summary of its subtree is out of date",
            (unsigned long)class->number);
    return 0;
}

static int check_list(const struct queue_class *class, struct error *err)
{
    size_t length = 0;
    const struct queue_entry *before = NULL;
    for (const struct queue_entry *entry = class->first; entry != NULL; entry = entry->after) {
        if (entry->class != class || entry->before != before)
            return error_set(err, -EPROTO, "queue class %lu: job %lu is linked wrongly",
                (unsigned long)class->number, (unsigned long)entry->job);
        if (before != NULL && (before->submit_ms > entry->submit_ms ||
                                  (before->submit_ms == entry->submit_ms && before->job >= entry->job)))
            return error_set(err, -EPROTO, "queue class %lu: job %lu is behind a younger one",
                (unsigned long)class->number, (unsigned long)entry->job);
        before = entry;
        length++;
    }
    if (class->last != before || class->length != length)
        return error_set(err, -EPROTO, "queue class %lu: %zu jobs are listed, %zu counted",
            (unsigned long)class->number, length, class->length);
    return 0;
}

static int check_links(const struct queue *queue, const struct queue_class *class, struct error *err)
{
    const struct queue_class *const children[] = { class->left, class->right };
    for (size_t i = 0; i < 2; i++)
        if (children[i] != NULL && (children[i]->parent != class || children[i]->heap > class->heap))
            return error_set(
                err, -EPROTO, "queue class %lu: a child is linked wrongly", (unsigned long)class->number);
    const struct queue_class *next = queue_next(class);
    if (next != NULL && !is_before(class, next))
        return error_set(err, -EPROTO, "queue class %lu is before %lu, contrary to their ranks",
            (unsigned long)class->number, (unsigned long)next->number);
    if (class->is_parked || (class->parent == NULL && queue->root != class))
        return error_set(
            err, -EPROTO, "queue class %lu should not be in the tree", (unsigned long)class->number);
    return 0;
}

int queue_invariant(const struct queue *queue, struct error *err)
{
    size_t length = 0, classes = 0, in_tree = 0;
    for (size_t i = 0; i < queue->classes.n_buckets; i++) {
        for (const struct map_link *at = queue->classes.buckets[i]; at != NULL; at = at->next) {
            const struct queue_class *class = MAP_ITEM(at, struct queue_class, link);
            int r = check_list(class, err);
            if (r < 0)
                return r;
            if (class->users == 0 || (class->size > 0) != (class->length > 0 && !class->is_parked))
                return error_set(err, -EPROTO, "queue class %lu: %zu jobs, %s, %s the tree",
                    (unsigned long)class->number, class->length, class->is_parked ? "parked" : "not parked",
                    class->size > 0 ? "in" : "outside");
            classes++;
            length += class->length;
            in_tree += class->size > 0;
        }
    }
    for (const struct queue_class *class = queue_first(queue); class != NULL; class = queue_next(class)) {
        int r = check_links(queue, class, err);
        if (r == 0)
            r = check_sums(class, err);
        if (r < 0)
            return r;
        in_tree--;
    }
    if (classes != queue->classes.count || length != queue->length || in_tree != 0)
        return error_set(err, -EPROTO, "queue: %zu classes and %zu jobs are there, %zu and %zu counted",
            classes, length, queue->classes.count, queue->length);
    return 0;
}
