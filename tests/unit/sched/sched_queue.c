/* SPDX-License-Identifier: MIT */
/* The queue by its own rules, and against a naive one: a sorted array that is searched from its start. */
#include "sched/queue/queue.h"
#include "unit_test.h"

#include <stdlib.h>
#include <string.h>

#define JOBS    600U
#define CLASSES 60U

struct fixture {
    struct queue queue;
    struct queue_entry entries[JOBS + 1];
    struct queue_class *classes[CLASSES];
    uint64_t seed;
};

static int open_queue(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    queue_init(&f->queue);
    f->seed = 1;
    *state = f;
    return 0;
}

static int close_queue(void **state)
{
    struct fixture *f = *state;
    queue_clear(&f->queue);
    free(f);
    return 0;
}

#define CASE(name, f) TEST_ON(name, struct fixture *f, open_queue, close_queue)

static uint64_t draw(struct fixture *f, uint64_t below)
{
    f->seed = f->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (f->seed >> 33) % below;
}

static struct queue_class *hold(struct fixture *f, uint32_t uid, double rank)
{
    struct class_key key = { .uid = uid, .request = { .gpus = 1 } };
    bool is_new;
    struct queue_class *class = queue_hold_class(&f->queue, &key, &is_new);
    class->rank = rank;
    class->need.whole = 1;
    return class;
}

static void add(struct fixture *f, uint64_t job, int64_t submit_ms, struct queue_class *class)
{
    f->entries[job].job = job;
    f->entries[job].submit_ms = submit_ms;
    queue_add(&f->queue, &f->entries[job], class);
}

static void assert_sound(const struct fixture *f)
{
    struct error err = { 0 };
    if (queue_invariant(&f->queue, &err) < 0)
        fail_msg("%s", err.message);
}

CASE(equal_keys_are_one_class_and_any_difference_makes_another, f)
{
    uint32_t allow[] = { 0, 3 };
    char model[] = "h200";
    const struct class_key keys[] = {
        { .uid = 1, .request = { .gpus = 1 } },
        { .uid = 2, .request = { .gpus = 1 } },
        { .uid = 1, .gid = 7, .request = { .gpus = 1 } },
        { .uid = 1, .priority = -1, .request = { .gpus = 1 } },
        { .uid = 1, .is_preemptible = true, .request = { .gpus = 1 } },
        { .uid = 1, .limit_ms = 5, .request = { .gpus = 1 } },
        { .uid = 1, .estimate_ms = 5, .request = { .gpus = 1 } },
        { .uid = 1, .command_hash = 5, .request = { .gpus = 1 } },
        { .uid = 1, .request = { .gpus = 1, .model = model } },
        { .uid = 1, .request = { .gpus = 1, .allow = allow, .n_allow = 2 } },
    };
    struct queue_class *classes[10];
    bool is_new;
    for (size_t i = 0; i < 10; i++) {
        classes[i] = queue_hold_class(&f->queue, &keys[i], &is_new);
        assert_true(is_new);
    }
    assert_int_equal(f->queue.classes.count, 10);
    for (size_t i = 0; i < 10; i++) {
        assert_ptr_equal(queue_hold_class(&f->queue, &keys[i], &is_new), classes[i]);
        assert_false(is_new);
        assert_int_equal(classes[i]->users, 2);
        queue_drop_class(&f->queue, classes[i]);
        queue_drop_class(&f->queue, classes[i]);
    }
    assert_int_equal(f->queue.classes.count, 0);
}

CASE(a_class_lives_empty_while_somebody_holds_it, f)
{
    struct queue_class *class = hold(f, 1, 0);
    add(f, 1, 10, class);
    queue_remove(&f->queue, &f->entries[1]);
    queue_remove(&f->queue, &f->entries[1]); // harmless
    assert_null(queue_first(&f->queue));
    assert_int_equal(f->queue.classes.count, 1);
    assert_int_equal(f->queue.length, 0);
    assert_int_equal(queue_position(&f->queue, &f->entries[1]), 0);
    assert_sound(f);
}

CASE(a_job_that_comes_back_takes_its_old_place, f)
{
    struct queue_class *class = hold(f, 1, 0);
    for (uint64_t job = 1; job <= 9; job++)
        add(f, job, (int64_t)(job / 3) * 100, class);
    for (uint64_t job = 1; job <= 9; job++) {
        queue_remove(&f->queue, &f->entries[job]);
        add(f, job, (int64_t)(job / 3) * 100, class);
        assert_sound(f);
        for (uint64_t other = 1; other <= 9; other++)
            assert_int_equal(queue_position(&f->queue, &f->entries[other]), other);
    }
}

CASE(equal_ranks_stand_in_order_of_their_oldest_jobs, f)
{
    struct queue_class *a = hold(f, 1, 5), *b = hold(f, 2, 5);
    add(f, 1, 10, a);
    add(f, 2, 20, b);
    add(f, 3, 30, a);
    assert_ptr_equal(queue_first(&f->queue), a);
    queue_remove(&f->queue, &f->entries[1]);
    assert_ptr_equal(queue_first(&f->queue), b);
    assert_sound(f);
    add(f, 1, 20, a);
    assert_ptr_equal(queue_first(&f->queue), a); // the lower id at the same time
    assert_int_equal(queue_position(&f->queue, &f->entries[2]), 3);
    assert_sound(f);
}

CASE(a_parked_class_is_passed_over_until_it_is_unparked_and_fresh, f)
{
    struct queue_class *a = hold(f, 1, 1), *b = hold(f, 2, 2);
    add(f, 1, 10, a);
    add(f, 2, 20, b);
    a->is_fresh = false;
    queue_park(&f->queue, a);
    add(f, 3, 30, a);
    assert_ptr_equal(queue_first(&f->queue), b);
    assert_null(queue_next(b));
    assert_int_equal(f->queue.length, 3);
    assert_int_equal(queue_position(&f->queue, &f->entries[2]), 1);
    assert_sound(f);
    queue_unpark(&f->queue, a);
    queue_unpark(&f->queue, a);
    assert_ptr_equal(queue_first(&f->queue), a);
    assert_true(a->is_fresh);
    assert_int_equal(queue_position(&f->queue, &f->entries[2]), 3);
    assert_sound(f);
}

/* Anew each time: offers change between calls. */
static struct queue_class *seek_counting(const struct fixture *f, const struct queue_class *after,
    const struct queue_offer *offers, size_t n_offers, uint64_t *work)
{
    struct queue_search search = { offers, n_offers, work };
    return queue_seek(&f->queue, after, &search);
}

static struct queue_class *seek(const struct fixture *f, const struct queue_class *after,
    const struct queue_offer *offers, size_t n_offers)
{
    uint64_t work = 0;
    return seek_counting(f, after, offers, n_offers, &work);
}

CASE(a_brief_offer_helps_only_jobs_that_end_within_its_window, f)
{
    struct queue_class *longer = hold(f, 1, 1), *shorter = hold(f, 2, 2);
    longer->horizon_ms = 5000;
    shorter->horizon_ms = 400;
    add(f, 1, 10, longer);
    add(f, 2, 20, shorter);
    longer->is_fresh = shorter->is_fresh = false;
    queue_refresh(&f->queue, longer);
    queue_refresh(&f->queue, shorter);
    struct queue_offer offer = { .brief = { .whole = 4, .models = 1 }, .window_ms = 400 };
    assert_ptr_equal(seek(f, NULL, &offer, 1), shorter);
    offer.window_ms = 399;
    assert_null(seek(f, NULL, &offer, 1));
    offer.any.whole = 1;
    assert_ptr_equal(seek(f, NULL, &offer, 1), longer);
    assert_ptr_equal(seek(f, longer, &offer, 1), shorter);
    assert_null(seek(f, shorter, &offer, 1));
}

CASE(models_of_a_need_are_alternatives, f)
{
    struct queue_class *class = hold(f, 1, 1);
    class->need.models = 6;
    class->is_fresh = false;
    add(f, 1, 10, class);
    struct queue_offer offer = { .any = { .whole = 1, .models = 9 } };
    assert_null(seek(f, NULL, &offer, 1));
    offer.any.models = 4;
    assert_ptr_equal(seek(f, NULL, &offer, 1), class);
    class->need.models = 0;
    offer.any.models = 0; // a node without GPUs serves who asks for no model
    queue_refresh(&f->queue, class);
    assert_ptr_equal(seek(f, NULL, &offer, 1), class);
}

/* --- against the naive queue --- */

static int compare(const void *a, const void *b)
{
    const struct queue_class *x = *(struct queue_class *const *)a, *y = *(struct queue_class *const *)b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->first->submit_ms != y->first->submit_ms)
        return x->first->submit_ms < y->first->submit_ms ? -1 : 1;
    return x->first->job < y->first->job ? -1 : x->first->job > y->first->job;
}

static size_t naive_order(const struct fixture *f, struct queue_class **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < CLASSES; i++)
        if (f->classes[i]->length > 0 && !f->classes[i]->is_parked)
            ret[n++] = f->classes[i];
    qsort(ret, n, sizeof(struct queue_class *), compare);
    return n;
}

static bool naive_helps(const struct queue_class *class, const struct queue_offer *offers, size_t n_offers)
{
    for (size_t i = 0; i < n_offers; i++)
        if (offer_meets(&offers[i].any, &class->need) ||
            (offer_meets(&offers[i].brief, &class->need) && class->horizon_ms <= offers[i].window_ms))
            return true;
    return false;
}

static struct node_offer draw_offer(struct fixture *f)
{
    return (struct node_offer){ .whole = (uint32_t)draw(f, 5),
        .share = (uint32_t)draw(f, 3) * 500,
        .gpu_mem = draw(f, 4),
        .cpu_milli = (uint32_t)draw(f, 4),
        .memory = draw(f, 4),
        .models = draw(f, 8),
        .gpus = (uint32_t)draw(f, 9) };
}

static void draw_need(struct fixture *f, struct queue_class *class)
{
    class->need = (struct node_need){ .whole = (uint32_t)draw(f, 9),
        .share = (uint32_t)draw(f, 2) * 500,
        .gpu_mem = draw(f, 3),
        .cpu_milli = (uint32_t)draw(f, 3),
        .memory = draw(f, 3),
        .models = draw(f, 4),
        .gpus = (uint32_t)draw(f, 8) };
    class->horizon_ms = (int64_t)draw(f, 1000);
    class->is_fresh = draw(f, 20) == 0;
}

static void change_something(struct fixture *f)
{
    struct queue_class *class = f->classes[draw(f, CLASSES)];
    struct queue_entry *entry = &f->entries[1 + draw(f, JOBS)];
    switch (draw(f, 8)) {
    case 0: queue_update(&f->queue, class, (double)draw(f, 12)); break;
    case 1:
        draw_need(f, class);
        queue_refresh(&f->queue, class);
        break;
    case 2: draw(f, 3) == 0 ? queue_park(&f->queue, class) : queue_unpark(&f->queue, class); break;
    default:
        if (entry->class != NULL) {
            queue_remove(&f->queue, entry);
        } else {
            entry->job = (uint64_t)(entry - f->entries);
            entry->submit_ms = (int64_t)draw(f, 30);
            queue_add(&f->queue, entry, class);
        }
    }
}

static void compare_with_naive(struct fixture *f)
{
    struct queue_class *order[CLASSES];
    size_t n = naive_order(f, order), at = 0;
    struct queue_class *class = queue_first(&f->queue);
    for (; class != NULL; class = queue_next(class), at++)
        assert_ptr_equal(class, order[at]);
    assert_int_equal(at, n);
    struct queue_offer offers[3];
    size_t n_offers = draw(f, 4);
    for (size_t i = 0; i < n_offers; i++)
        offers[i] = (struct queue_offer){ draw_offer(f), draw_offer(f), (int64_t)draw(f, 1000) };
    uint64_t work = 0;
    struct queue_search search = { offers, n_offers, &work };
    struct queue_class *found = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!order[i]->is_fresh && !naive_helps(order[i], offers, n_offers))
            continue;
        found = queue_seek(&f->queue, found, &search);
        assert_ptr_equal(found, order[i]);
    }
    assert_null(queue_seek(&f->queue, found, &search));
    uint64_t position = 1;
    for (size_t i = 0; i < n; i++) {
        for (struct queue_entry *entry = order[i]->first; entry != NULL; entry = entry->after, position++)
            if (draw(f, 16) == 0)
                assert_int_equal(queue_position(&f->queue, entry), position);
    }
}

CASE(random_histories_agree_with_a_sorted_array, f)
{
    for (uint32_t i = 0; i < CLASSES; i++) {
        f->classes[i] = hold(f, i, (double)draw(f, 12));
        draw_need(f, f->classes[i]);
    }
    for (unsigned step = 0; step < 20000; step++) {
        change_something(f);
        if (step % 16 == 0) {
            assert_sound(f);
            compare_with_naive(f);
        }
    }
}

CASE(a_seek_that_finds_nothing_looks_at_a_few_nodes_of_ten_thousand, f)
{
    _cleanup_free_ struct queue_entry *entries = calloc(10000, sizeof(*entries));
    struct queue_class *narrow = NULL;
    for (uint32_t i = 0; i < 10000; i++) {
        struct queue_class *class = hold(f, i, (double)draw(f, 1000000));
        class->is_fresh = false;
        class->need.whole = i == 5000 ? 1 : 4;
        entries[i].job = i + 1;
        queue_add(&f->queue, &entries[i], class);
        narrow = i == 5000 ? class : narrow;
    }
    uint64_t work = 0;
    struct queue_offer offer = { .any = { .whole = 0 } };
    assert_null(seek_counting(f, NULL, &offer, 1, &work));
    assert_int_equal(work, 1);
    offer.any.whole = 1;
    assert_ptr_equal(seek_counting(f, NULL, &offer, 1, &work), narrow);
    assert_null(seek_counting(f, narrow, &offer, 1, &work));
    assert_true(work < 200);
}

CASE(a_bit_of_everything_is_no_help_to_those_who_need_much_of_one_thing, f)
{
    _cleanup_free_ struct queue_entry *entries = calloc(1000, sizeof(*entries));
    for (uint32_t i = 0; i < 1000; i++) {
        struct queue_class *class = hold(f, i, (double)draw(f, 1000000));
        class->is_fresh = false;
        class->need.whole = i % 2 == 0 ? 4 : 1;
        class->need.cpu_milli = i % 2 == 0 ? 1000 : 64000;
        entries[i].job = i + 1;
        queue_add(&f->queue, &entries[i], class);
    }
    uint64_t work = 0;
    struct queue_offer offer = { .any = { .whole = 1, .cpu_milli = 1000 } };
    assert_null(seek_counting(f, NULL, &offer, 1, &work));
    assert_int_equal(work, 1);
}

CASE(a_search_goes_on_when_new_needs_come, f)
{
    struct queue_class *first = hold(f, 1, 1), *second = hold(f, 2, 2);
    uint64_t work = 0;
    struct queue_offer offer = { .any = { .whole = 2 } };
    struct queue_search search = { &offer, 1, &work };
    first->is_fresh = second->is_fresh = false;
    add(f, 1, 10, first);
    assert_ptr_equal(queue_seek(&f->queue, NULL, &search), first);
    second->need.whole = 2;
    add(f, 2, 20, second);
    assert_ptr_equal(queue_seek(&f->queue, first, &search), second);
    second->need.whole = 3;
    queue_refresh(&f->queue, second);
    assert_null(queue_seek(&f->queue, first, &search));
    queue_remove(&f->queue, &f->entries[2]);
    second->need.whole = 1;
    add(f, 2, 20, second);
    assert_ptr_equal(queue_seek(&f->queue, first, &search), second);
}
