/* SPDX-License-Identifier: MIT */
/*
 * log_box [SEED [COUNT]]: controllers that append to the cluster's log and follow it, with an etcd in memory
 * (etcd_model.h) that loses requests, loses answers, and carries requests out late, while leases end and
 * other controllers take over in the middle of a request. The leader that was does not know it.
 *
 * The promises: what was acknowledged is in the log for ever, once, in its place; the log is one chain; what
 * a controller read is the log; a leader that is none any more has nothing acknowledged; no cluster is
 * founded where another is.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "controller/cluster/cluster_log.h"
#include "etcd_model.h"

#define CONTROLLERS 3
#define STEPS       60
#define ENTRIES_MAX 4096
#define LONG        262200 // bytes of an entry that needs parts
#define TRIES_MAX   6      // of a leader that does not know that it is none

int __wrap_nanosleep(const struct timespec *wait, struct timespec *left);

struct controller {
    struct etcd *etcd;
    struct store_position position;
    int64_t revision; // of its leadership; 0: a standby
    int tries;
    bool is_acting; // in the middle of a request
};

struct world {
    struct etcd_model *model;
    struct controller controllers[CONTROLLERS];
    struct store_position acknowledged[ENTRIES_MAX]; // by number
    uint64_t newest, next_id;
    unsigned takeovers, appends, denied, unknown;
    int depth;
    bool is_calm; // leaders last and write many snapshots, and requests come very late
};

static struct world world;
static uint64_t seed;

static _Noreturn void fail(const char *what, uint64_t number)
{
    (void)printf("seed %" PRIu64 ": %s (entry %" PRIu64 ")\n", seed, what, number);
    exit(1);
}

int __wrap_nanosleep(const struct timespec *wait, struct timespec *left)
{
    return 0;
}

static uint32_t dice(uint32_t sides)
{
    return etcd_model_random(world.model) % sides;
}

/* --- a controller --- */

/* Applies what the log has after its position, as a standby does. */
static bool follow(struct controller *self)
{
    for (;;) {
        struct cluster_view view = { 0 };
        uint64_t from = self->position.number;
        if (cluster_log_read(self->etcd, from, &view, NULL) < 0)
            return false; // asked again later
        size_t next = 0, applied = 0;
        bool is_known = view.n_entries > 0 && view.entries[0].entry.position.number == from;
        if (is_known && view.entries[0].entry.position.id != self->position.id && from != 0)
            fail("a controller has read an entry that the log does not have", from);
        if (is_known)
            next = 1;
        else if (view.base.position.number > from)
            self->position = view.base.position, applied++;
        else if (from > view.base.position.number)
            fail("the log ends before what a controller has read", from);
        for (; next < view.n_entries; next++, applied++) {
            const struct store_entry *entry = &view.entries[next].entry;
            if (entry->position.number <= self->position.number)
                continue;
            if (entry->before.number != self->position.number || entry->before.id != self->position.id)
                fail("an entry does not follow the one before it", entry->position.number);
            self->position = entry->position;
        }
        cluster_view_clear(&view);
        if (applied == 0)
            return true;
    }
}

/* Its client of etcd is used by one request at a time. */
static bool catch_up(struct controller *self)
{
    self->is_acting = true;
    bool is_complete = follow(self);
    self->is_acting = false;
    return is_complete;
}

static void take_over(void)
{
    struct controller *self = &world.controllers[dice(CONTROLLERS)];
    if (self->is_acting || etcd_model_leader(world.model) != 0)
        return;
    self->revision = etcd_model_claim(world.model);
    self->tries = 0;
    world.takeovers++;
    if (!catch_up(self) || etcd_model_leader(world.model) != self->revision)
        self->revision = 0; // cluster/follow.c: finish()
}

static bool may_continue(void *arg)
{
    struct controller *self = arg;
    bool is_leader = etcd_model_leader(world.model) == self->revision;
    return is_leader || self->tries++ < TRIES_MAX;
}

static void acknowledge(const struct controller *self, struct store_position position)
{
    char key[32];
    (void)snprintf(key, sizeof(key), "mgpu/log/%016" PRIx64, position.number);
    int64_t leader = etcd_model_leader_at(world.model, key);
    if (leader != -1 && leader != self->revision)
        fail("an entry was acknowledged whose writer did not lead", position.number);
    if (position.number >= ENTRIES_MAX)
        fail("too many entries for this test", position.number);
    if (world.acknowledged[position.number].number != 0)
        fail("two entries with one number were acknowledged", position.number);
    world.acknowledged[position.number] = position;
    if (position.number > world.newest)
        world.newest = position.number;
}

static void append(struct controller *self)
{
    static uint8_t changes[LONG];
    const char *_Atomic trouble = NULL;
    struct store_entry entry = {
        .before = self->position,
        .position = { self->position.number + 1, ++world.next_id },
        .changes = changes,
        .length = dice(25) == 0 ? LONG : 16,
    };
    const struct cluster_appending appending = { .etcd = self->etcd,
        .revision = self->revision,
        .may_continue = may_continue,
        .arg = self,
        .trouble = &trouble };
    self->is_acting = true;
    int r = cluster_log_append(&appending, &entry, NULL);
    self->is_acting = false;
    world.appends++;
    if (r == 0) {
        acknowledge(self, entry.position);
        self->position = entry.position;
        return;
    }
    /* The program ends, and is started again as a standby whose store lacks the entry. */
    world.denied += r == -ECANCELED;
    world.unknown += r != -ECANCELED;
    self->revision = 0;
}

static void snapshot(struct controller *self)
{
    _cleanup_close_ int fd = memfd_create("snapshot", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 4096) < 0)
        abort();
    self->is_acting = true;
    (void)cluster_log_put_base(self->etcd, self->revision, NULL, fd, self->position, NULL);
    self->is_acting = false;
}

static void step(void)
{
    struct controller *self = &world.controllers[dice(CONTROLLERS)];
    if (self->is_acting)
        return;
    if (self->revision == 0)
        (void)catch_up(self);
    else if (dice(world.is_calm ? 3 : 15) == 0)
        snapshot(self);
    else
        append(self);
}

/* In the middle of a request: time passes, and others act. */
static void on_request(void *arg)
{
    if (world.depth > 2)
        return;
    world.depth++;
    if (dice(world.is_calm ? 200 : 12) == 0)
        etcd_model_end_lease(world.model);
    if (etcd_model_leader(world.model) == 0 && dice(2) == 0)
        take_over();
    if (dice(6) == 0)
        step();
    world.depth--;
}

/* --- the whole --- */

static void found(void)
{
    _cleanup_close_ int fd = memfd_create("snapshot", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 4096) < 0)
        abort();
    etcd_model_spare(world.model, true);
    if (cluster_log_put_base(
            world.controllers[0].etcd, 0, "instance", fd, (struct store_position){ 1, 1 }, NULL) < 0)
        fail("the cluster cannot be founded", 0);
    etcd_model_spare(world.model, false);
}

/* With nothing to write but the keys themselves, so that only the last transaction can refuse it. */
static void found_another(void)
{
    _cleanup_close_ int fd = memfd_create("snapshot", MFD_CLOEXEC);
    if (fd < 0)
        abort();
    if (cluster_log_put_base(
            world.controllers[0].etcd, 0, "another", fd, (struct store_position){ 1, 2 }, NULL) != -EEXIST)
        fail("a cluster was founded where another is", 0);
}

/* With an etcd that works and nobody acting: all that is acknowledged is in the log, or below its base. */
static void judge(void)
{
    struct controller reader = { .etcd = world.controllers[0].etcd };
    struct cluster_view view = { 0 };
    etcd_model_spare(world.model, true);
    found_another();
    if (cluster_log_read(reader.etcd, UINT64_MAX, &view, NULL) < 0)
        fail("the log cannot be read", 0);
    struct store_position at = view.base.position;
    if (world.acknowledged[at.number].number != 0 && world.acknowledged[at.number].id != at.id)
        fail("the snapshot is of another history", at.number);
    cluster_view_clear(&view);
    for (bool is_more = true; is_more;) {
        if (cluster_log_read(reader.etcd, at.number + 1, &view, NULL) < 0)
            fail("the log cannot be read", at.number);
        is_more = view.n_entries > 0;
        for (size_t i = 0; i < view.n_entries; i++) {
            const struct store_entry *entry = &view.entries[i].entry;
            if (entry->position.number != at.number + 1 || entry->before.id != at.id)
                fail("the log is no chain", entry->position.number);
            at = entry->position;
            if (world.acknowledged[at.number].number != 0 && world.acknowledged[at.number].id != at.id)
                fail("an acknowledged entry was replaced", at.number);
        }
        cluster_view_clear(&view);
    }
    if (at.number < world.newest)
        fail("an acknowledged entry is not in the log", world.newest);
    for (int i = 0; i < CONTROLLERS; i++)
        if (!catch_up(&world.controllers[i]) || world.controllers[i].position.id != at.id)
            fail("a controller does not follow to the end", at.number);
}

static void run(struct etcd_settings *settings)
{
    bool is_calm = seed % 3 == 0;
    world = (struct world){
        .model = etcd_model_new(seed, is_calm ? 12 : 3, on_request, NULL), .next_id = 1, .is_calm = is_calm
    };
    for (int i = 0; i < CONTROLLERS; i++)
        world.controllers[i].etcd = etcd_new(etcd_model_curl(world.model), settings);
    found();
    for (int i = 0; i < STEPS; i++) {
        if (dice(world.is_calm ? 200 : 20) == 0)
            etcd_model_end_lease(world.model);
        if (etcd_model_leader(world.model) == 0)
            take_over();
        step();
    }
    judge();
    for (int i = 0; i < CONTROLLERS; i++)
        etcd_free(world.controllers[i].etcd);
    etcd_model_free(world.model);
}

int main(int argc, char **argv)
{
    struct etcd_settings settings = { 0 };
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1,
             count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    unsigned takeovers = 0, appends = 0, denied = 0, unknown = 0;
    if (etcd_settings_parse("etcd://model:1", &settings, NULL) < 0)
        abort();
    for (seed = first; seed < first + count; seed++) {
        run(&settings);
        takeovers += world.takeovers, appends += world.appends, denied += world.denied,
            unknown += world.unknown;
    }
    (void)printf("%" PRIu64 " histories: %u takeovers, %u appends, of which %u were denied and %u unknown\n",
        count, takeovers, appends, denied, unknown);
    etcd_settings_clear(&settings);
    if (count >= 100 && (takeovers < count || denied == 0)) {
        (void)fprintf(stderr, "log_box: what it is for has hardly happened\n");
        return 1;
    }
    return 0;
}
