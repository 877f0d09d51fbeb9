/* SPDX-License-Identifier: MIT */
/*
 * libmunge blocks, and retries for many seconds if munged hangs. One thread calls it; a request that has
 * waited WAIT_MS gets a failure, whether or not the thread has reached it.
 *
 *   waiting ──the thread takes it──> active ──decoded──> done ──the loop delivers it──> freed
 *      └──── its time is up ────────────┴──> answered, and freed by its current holder
 *
 * Thread and loop share one reference-counted struct, freed by the last: a thread that is inside libmunge
 * cannot be waited for when the program exits.
 */
#include "controller/identity/munge_worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"

#define WAIT_MS     1000
#define WAITING_MAX 64U

struct question {
    struct question *next;
    char *credential;
    struct munge_claim claim;
    struct error err;
    int result;
    /* The loop's alone: */
    struct munge_worker *worker;
    struct event *deadline;
    munge_answer_fn *on_answer;
    void *arg;
};

struct room {
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct munge *munge;
    int eventfd; // readable when a request has been decoded
    unsigned users;
    unsigned waiting_count;
    bool is_closed;
    bool is_abandoned; // the active request was dropped
    struct question *waiting, *at_work, *done;
};

struct munge_worker {
    struct room *room;
    struct event_base *loop;
    struct event *done;
};

static void free_question(struct question *question)
{
    free(question->credential);
    free(question->claim.payload);
    free(question);
}

static void leave(struct room *room)
{
    (void)pthread_mutex_lock(&room->mutex);
    bool is_last = --room->users == 0;
    (void)pthread_mutex_unlock(&room->mutex);
    if (!is_last)
        return;
    (void)pthread_mutex_destroy(&room->mutex);
    (void)pthread_cond_destroy(&room->wake);
    munge_free(room->munge);
    (void)close(room->eventfd);
    free(room);
}

/* --- the thread --- */

static void finish(struct room *room)
{
    struct question *question = take_ptr(room->at_work);
    if (room->is_abandoned) {
        free_question(question);
        return;
    }
    question->next = room->done;
    room->done = question;
    (void)eventfd_write(room->eventfd, 1);
}

static void *run(void *arg)
{
    struct room *room = arg;
    (void)pthread_mutex_lock(&room->mutex);
    while (!room->is_closed) {
        struct question *question = room->waiting;
        if (question == NULL) {
            (void)pthread_cond_wait(&room->wake, &room->mutex);
            continue;
        }
        room->waiting = question->next;
        room->waiting_count--;
        room->at_work = question;
        room->is_abandoned = false;
        (void)pthread_mutex_unlock(&room->mutex);
        question->result = munge_decode(room->munge, question->credential, &question->claim, &question->err);
        (void)pthread_mutex_lock(&room->mutex);
        finish(room);
    }
    (void)pthread_mutex_unlock(&room->mutex);
    leave(room);
    return NULL;
}

/* Signals are left to the loop. */
static int start_thread(struct room *room, struct error *err)
{
    pthread_t id;
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = -pthread_create(&id, NULL, run, room);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r < 0)
        return error_set_errno(err, r, "cannot start the thread for MUNGE");
    (void)pthread_detach(id);
    return 0;
}

/* --- the loop --- */

static void answer(struct question *question, const struct munge_claim *claim, const struct error *err)
{
    event_free(question->deadline);
    question->deadline = NULL;
    question->on_answer(question->arg, claim, err);
}

static void on_done(int fd, short what, void *arg)
{
    struct munge_worker *worker = arg;
    eventfd_t count;
    (void)eventfd_read(fd, &count);
    (void)pthread_mutex_lock(&worker->room->mutex);
    struct question *next = NULL, *question = take_ptr(worker->room->done);
    (void)pthread_mutex_unlock(&worker->room->mutex);
    for (; question != NULL; question = next) {
        next = question->next;
        answer(question, question->result == 0 ? &question->claim : NULL, &question->err);
        free_question(question);
    }
}

/* True if the caller now owns the question; else the thread frees it. False for a question that is done:
 * on_done follows. */
static bool take_back(struct room *room, struct question *question, bool *ret_is_done)
{
    struct question **place = &room->waiting;
    bool is_waiting = false;
    (void)pthread_mutex_lock(&room->mutex);
    while (*place != NULL && *place != question)
        place = &(*place)->next;
    if (*place == question) {
        *place = question->next;
        room->waiting_count--;
        is_waiting = true;
    } else if (room->at_work == question) {
        room->is_abandoned = true;
    } else {
        *ret_is_done = true;
    }
    (void)pthread_mutex_unlock(&room->mutex);
    return is_waiting;
}

static void on_deadline(int fd, short what, void *arg)
{
    struct question *question = arg;
    struct error err = { 0 };
    bool is_done = false;
    /* Everything that the loop needs is read before the thread may free the question. */
    struct event *deadline = question->deadline;
    munge_answer_fn *on_answer = question->on_answer;
    void *asker = question->arg;
    bool is_ours = take_back(question->worker->room, question, &is_done);
    if (is_done)
        return;
    if (is_ours)
        free_question(question);
    event_free(deadline);
    (void)error_set(&err, -ECOMM, "munged did not respond within a second");
    (void)error_hint(&err, "check systemctl status munge on mgpud's machine");
    on_answer(asker, NULL, &err);
}

int munge_worker_new(
    struct event_base *loop, const char *socket, struct munge_worker **ret, struct error *err)
{
    struct munge *munge = NULL;
    int r = munge_open(socket, &munge, err);
    if (r < 0)
        return r;
    struct room *room = xcalloc(1, sizeof(*room));
    *room = (struct room){ .munge = munge, .eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .users = 2 };
    (void)pthread_mutex_init(&room->mutex, NULL);
    (void)pthread_cond_init(&room->wake, NULL);
    r = room->eventfd < 0 ? error_set_errno(err, -errno, "cannot create an eventfd")
                          : start_thread(room, err);
    if (r < 0) {
        room->users = 1;
        leave(room);
        return r;
    }
    struct munge_worker *worker = xcalloc(1, sizeof(*worker));
    worker->room = room;
    worker->loop = loop;
    worker->done = event_new(loop, room->eventfd, EV_READ | EV_PERSIST, on_done, worker);
    if (worker->done == NULL)
        abort();
    (void)event_add(worker->done, NULL);
    *ret = worker;
    return 0;
}

static void end_all(struct question *first, const struct error *err)
{
    for (struct question *next = NULL; first != NULL; first = next) {
        next = first->next;
        answer(first, NULL, err);
        free_question(first);
    }
}

void munge_worker_free(struct munge_worker *worker)
{
    struct error err = { 0 };
    struct question at_work = { 0 };
    if (worker == NULL)
        return;
    struct room *room = worker->room;
    (void)error_set(&err, -ECOMM, "mgpud is stopping");
    (void)pthread_mutex_lock(&room->mutex);
    room->is_closed = true;
    if (room->at_work != NULL && !room->is_abandoned) {
        at_work.deadline = room->at_work->deadline;
        at_work.on_answer = room->at_work->on_answer;
        at_work.arg = room->at_work->arg;
        room->is_abandoned = true;
    }
    struct question *waiting = take_ptr(room->waiting), *done = take_ptr(room->done);
    (void)pthread_cond_signal(&room->wake);
    (void)pthread_mutex_unlock(&room->mutex);
    if (at_work.on_answer != NULL)
        answer(&at_work, NULL, &err);
    end_all(waiting, &err);
    end_all(done, &err);
    event_free(worker->done);
    leave(room);
    free(worker);
}

int munge_worker_ask(struct munge_worker *worker, const char *credential, munge_answer_fn *on_answer,
    void *arg, struct error *err)
{
    const struct timeval wait = { .tv_sec = WAIT_MS / 1000 };
    struct room *room = worker->room;
    int r = 0;
    struct question *question = xcalloc(1, sizeof(*question));
    *question = (struct question){ .credential = xstrdup(credential),
        .worker = worker,
        .deadline = NULL,
        .on_answer = on_answer,
        .arg = arg };
    question->deadline = evtimer_new(worker->loop, on_deadline, question);
    if (question->deadline == NULL)
        abort();
    (void)event_add(question->deadline, &wait);
    (void)pthread_mutex_lock(&room->mutex);
    if (room->waiting_count == WAITING_MAX) {
        r = error_set(err, -ECOMM, "%u requests are already waiting for munged", WAITING_MAX);
    } else {
        struct question **end = &room->waiting;
        while (*end != NULL)
            end = &(*end)->next;
        *end = question;
        room->waiting_count++;
        (void)pthread_cond_signal(&room->wake);
    }
    (void)pthread_mutex_unlock(&room->mutex);
    if (r < 0) {
        event_free(question->deadline);
        free_question(question);
    }
    return r;
}
