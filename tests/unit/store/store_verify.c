/* SPDX-License-Identifier: MIT */
/*
 * Single bits of mgpu.db are flipped, in pages of each kind: the start refuses, or the check behind it has a
 * finding, or every table says what it said before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "store_fixture.h"
#include "unit_test.h"

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, fixture_setup, fixture_teardown)

#define JOBS      300 // enough for interior pages
#define FLIPS     24  // of pages of each kind
#define LONG_TEXT 20000
#define PAGES_MAX 4096
#define TRIES     500 // for a byte that is used

static bool exists(struct fixture *fixture, const char *name)
{
    return access(fixture_path(fixture, name), F_OK) == 0;
}

CASE(a_sound_store_is_reported_and_its_snapshot_kept, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_snapshot(fixture);
    assert_int_equal(fixture->verification.findings, 0);
    assert_false(fixture->verification.is_file_damaged);
    assert_true(fixture->verification.checked_ms > 0);
    assert_true(exists(fixture, "backup/mgpu-00000001.db"));
    assert_false(exists(fixture, "backup/unfinished.db"));
}

CASE(a_damaged_store_takes_no_snapshot_and_keeps_those_it_has, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_snapshot(fixture);
    assert_int_equal(fixture_sql(fixture, "UPDATE jobs SET exit_code = 7 WHERE id = 1"), SQLITE_OK);
    for (int i = 0; i < 5; i++) {
        fixture_snapshot(fixture);
        assert_true(fixture->verification.findings > 0);
        assert_false(fixture->verification.is_file_damaged);
        assert_non_null(strstr(fixture->verification.finding, "exit_code"));
    }
    assert_true(exists(fixture, "backup/mgpu-00000001.db"));
    assert_false(exists(fixture, "backup/mgpu-00000002.db"));
    assert_false(exists(fixture, "backup/unfinished.db"));
    assert_int_equal(fixture_sql(fixture, "UPDATE jobs SET exit_code = 3 WHERE id = 1"), SQLITE_OK);
    fixture_snapshot(fixture);
    assert_int_equal(fixture->verification.findings, 0);
    assert_true(exists(fixture, "backup/mgpu-00000002.db"));
}

/* A start does not compare indexes with their tables. */
CASE(an_index_without_its_rows_is_damage_of_the_file, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_close(fixture);
    assert_int_equal(
        fixture_sql(fixture, "DROP INDEX events_job; CREATE INDEX events_job ON events (job) WHERE seq < 2;"
                             "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET"
                             " sql = 'CREATE INDEX events_job ON events (job)' WHERE name = 'events_job'"),
        SQLITE_OK);
    fixture_open(fixture);
    fixture_snapshot(fixture);
    assert_true(fixture->verification.is_file_damaged);
    assert_non_null(strstr(fixture->verification.finding, "events_job"));
}

CASE(commits_continue_while_a_copy_is_checked, fixture)
{
    for (uint32_t i = 0; i < JOBS; i++)
        fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    store_snapshot(fixture->store);
    while (!fixture->is_verified) {
        fixture_run_job(fixture, 0);
        fixture_commit_all(fixture);
    }
    assert_int_equal(fixture->verification.findings, 0);
    assert_int_equal(fixture->warnings, 0);
}

CASE(a_store_that_closes_drops_the_check, fixture)
{
    for (uint32_t i = 0; i < JOBS; i++)
        fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    store_snapshot(fixture->store);
    fixture_close(fixture);
    assert_false(exists(fixture, "backup/unfinished.db"));
    fixture_open(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
}

/* --- flipped bits --- */

enum page_kind {
    PAGE_HEADER,
    PAGE_TABLE_LEAF,
    PAGE_TABLE_INTERIOR,
    PAGE_INDEX_LEAF,
    PAGE_INDEX_INTERIOR,
    PAGE_OVERFLOW,
    PAGE_FREE_TRUNK,
    PAGE_FREE_LEAF,
    PAGE_KINDS,
};

static const char *const kind_names[PAGE_KINDS] = { "header", "table leaf", "table interior", "index leaf",
    "index interior", "overflow", "free trunk", "free leaf" };

struct file {
    struct buffer bytes;
    size_t page_size, pages;
    enum page_kind kinds[PAGES_MAX];
};

static uint32_t number_at(const struct file *file, size_t offset)
{
    const uint8_t *b = file->bytes.bytes + offset;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* What is neither a b-tree page nor on the free list holds the rest of a long record. */
static void sort_pages(struct file *file)
{
    file->page_size = (size_t)file->bytes.bytes[16] << 8 | file->bytes.bytes[17];
    file->pages = file->bytes.length / file->page_size;
    assert_in_range(file->pages, 2, PAGES_MAX);
    for (size_t i = 0; i < file->pages; i++)
        switch (file->bytes.bytes[i * file->page_size]) {
        case 2: file->kinds[i] = PAGE_INDEX_INTERIOR; break;
        case 5: file->kinds[i] = PAGE_TABLE_INTERIOR; break;
        case 10: file->kinds[i] = PAGE_INDEX_LEAF; break;
        case 13: file->kinds[i] = PAGE_TABLE_LEAF; break;
        default: file->kinds[i] = PAGE_OVERFLOW; break;
        }
    file->kinds[0] = PAGE_HEADER;
    for (uint32_t trunk = number_at(file, 32); trunk != 0;) {
        size_t begin = (trunk - 1) * file->page_size;
        file->kinds[trunk - 1] = PAGE_FREE_TRUNK;
        for (uint32_t i = 0; i < number_at(file, begin + 4); i++)
            file->kinds[number_at(file, begin + 8 + 4 * i) - 1] = PAGE_FREE_LEAF;
        trunk = number_at(file, begin);
    }
}

/* A store with pages of all kinds, and its tables as text. */
static void fill(struct fixture *fixture)
{
    struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, "true");
    _cleanup_free_ char *text = xcalloc(1, LONG_TEXT + 1);
    memset(text, 'x', LONG_TEXT);
    strings_take(&spec.env, xasprintf("LONG=%s", text));
    spec.cwd = xstrdup("/tmp");
    for (uint32_t i = 0; i < JOBS; i++)
        fixture_run_job(fixture, 0);
    for (uint32_t i = 0; i < 4; i++)
        job_free(fixture_submit(fixture, &spec));
    job_spec_clear(&spec);
    fixture_commit_all(fixture);
    assert_int_equal(
        fixture_sql(fixture, "CREATE TABLE old AS SELECT * FROM events; DROP TABLE old"), SQLITE_OK);
}

/* A sum over all that follows from events, and the events themselves. */
static uint64_t contents(struct fixture *fixture)
{
    static const char *const queries[] = { "SELECT * FROM jobs ORDER BY id",
        "SELECT * FROM attempts ORDER BY job, attempt", "SELECT * FROM gpu_alloc ORDER BY node, uuid, slot",
        "SELECT * FROM ended ORDER BY job", "SELECT * FROM events ORDER BY seq" };
    uint64_t sum = 0xcbf29ce484222325ULL;
    sqlite3 *db = NULL;
    assert_int_equal(
        sqlite3_open_v2(fixture_path(fixture, "mgpu.db"), &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        sqlite3_stmt *select = NULL;
        assert_int_equal(sqlite3_prepare_v2(db, queries[i], -1, &select, NULL), SQLITE_OK);
        while (sqlite3_step(select) == SQLITE_ROW)
            for (int column = 0; column < sqlite3_column_count(select); column++) {
                const uint8_t *bytes = sqlite3_column_blob(select, column);
                for (int at = 0, n = sqlite3_column_bytes(select, column); at < n; at++)
                    sum = (sum ^ bytes[at]) * 0x100000001b3ULL;
                sum = (sum ^ (uint64_t)sqlite3_column_type(select, column)) * 0x100000001b3ULL;
            }
        (void)sqlite3_finalize(select);
    }
    (void)sqlite3_close(db);
    return sum;
}

struct tally {
    unsigned refused, found, harmless;
};

static void flip(struct fixture *fixture, const struct file *file, size_t at, unsigned bit, uint64_t before,
    struct tally *tally)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    buffer_append(&bytes, file->bytes.bytes, file->bytes.length);
    bytes.bytes[at] ^= (uint8_t)(1U << bit);
    (void)unlink(fixture_path(fixture, "mgpu.db-wal"));
    (void)unlink(fixture_path(fixture, "mgpu.db-shm"));
    fixture_put(fixture, "mgpu.db", bytes.bytes, bytes.length);
    fixture->has_failed = false;
    if (fixture_try_open(fixture) < 0) {
        tally->refused++;
        return;
    }
    fixture_snapshot(fixture);
    if (!fixture->is_verified || fixture->verification.findings > 0)
        tally->found++;
    else if (contents(fixture) == before)
        tally->harmless++;
    else
        fail_msg("bit %u of byte %zu (page %zu, %s) changes a table, and nothing was found", bit, at,
            at / file->page_size + 1, kind_names[file->kinds[at / file->page_size]]);
    fixture_close(fixture);
}

/* Bytes that are not used are mostly 0. */
static size_t choose(const struct file *file, size_t page)
{
    size_t at = 0;
    for (int i = 0; i < TRIES && (i == 0 || file->bytes.bytes[at] == 0); i++)
        at = page * file->page_size + (size_t)random() % file->page_size;
    return at;
}

CASE(no_flipped_bit_of_any_page_goes_unnoticed, fixture)
{
    _cleanup_free_ struct file *file = xcalloc(1, sizeof(*file));
    size_t pages[PAGES_MAX];
    fill(fixture);
    fixture_close(fixture);
    uint64_t before = contents(fixture);
    fixture_keep(fixture, "mgpu.db", &file->bytes);
    sort_pages(file);
    srandom(14);
    for (int kind = 0; kind < PAGE_KINDS; kind++) {
        struct tally tally = { 0 };
        size_t n = 0;
        for (size_t i = 0; i < file->pages; i++)
            if (file->kinds[i] == (enum page_kind)kind)
                pages[n++] = i;
        if (n == 0)
            fail_msg("the store has no %s page", kind_names[kind]);
        for (unsigned i = 0; i < FLIPS; i++)
            flip(fixture, file, choose(file, pages[(size_t)random() % n]), (unsigned)random() % 8, before,
                &tally);
        print_message("%-14s %4zu pages: %u refused, %u found, %u harmless\n", kind_names[kind], n,
            tally.refused, tally.found, tally.harmless);
        if (kind != PAGE_FREE_LEAF && kind != PAGE_HEADER)
            assert_true(tally.refused + tally.found > 0);
    }
    buffer_clear(&file->bytes);
}

/* In memory a run takes seconds. */
int main(void)
{
    if (access("/dev/shm", W_OK) == 0)
        (void)setenv("TMPDIR", "/dev/shm", 0);
    return unit_tests_run(NULL, NULL);
}
