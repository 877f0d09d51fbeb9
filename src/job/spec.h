/* SPDX-License-Identifier: MIT */
/* What a user asked for: the immutable part of a job, with its limits and its validation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/record.h"
#include "base/strings.h"
#include "job/ask.h"

#define SPEC_COMMAND_MAX  (256U << 10) // all words together
#define SPEC_ENV_MAX      (1U << 20)   // all entries together
#define SPEC_PATH_MAX     4096U
#define SPEC_NAME_MAX     128U
#define SPEC_SETUP_MAX    (64U << 10)
#define SPEC_SCRIPT_MAX   (1U << 20)
#define SPEC_TTY_MAX      4096U // rows or columns of a terminal
#define SPEC_GPUS_MAX     ASK_GPUS_MAX
#define SPEC_PRIORITY_MAX ASK_PRIORITY_MAX

struct job_spec {
    struct strings command; // argv, at least one word
    struct strings env;     // the submitter's environment
    char *name;             // NULL: the command's first word is shown
    char *cwd;              // absolute
    char *cwd_fallback; // where it runs on a node that has no cwd: absolute, "home" or "tmp"; NULL: it fails
    char *setup;        // shell text run before the command, or NULL
    char *script;       // text of the file that `command` begins with, or NULL: the file itself is run
    char *output;       // file for stdout and stderr, %j and %n replaced; NULL: the default log
    char *error;        // file for stderr alone, likewise; NULL: that of stdout
    char *input;        // file for stdin, likewise; NULL: /dev/null
    bool truncate;      // each attempt empties these output files first; else they are appended to
    char *image;        // container image that the command runs in, or NULL
    struct strings image_mounts; // SRC[:DST[:ro]]: what else of the node is seen in it
    char *image_runtime;         // podman or apptainer; NULL: what the node has
    struct job_ask ask;          // what it needs and when
    char *submit_key;            // random text by which a repeated submit is recognised, or NULL
    uint32_t umask;
    bool hold;                      // submitted held
    bool tty;                       // runs on a terminal
    uint32_t tty_rows, tty_columns; // its size at the start; 0: 24 by 80
};

#define SPEC_CWD_HOME "home"
#define SPEC_CWD_TMP  "tmp"

/* Is this a place to fall back to? A sentence that names `what`, and a hint, when it is not. */
int job_spec_check_fallback(const char *what, const char *value, struct error *err);

extern const struct record_type job_spec_record;

/* A spec with the defaults: one GPU, priority 0, umask 022. */
void job_spec_init(struct job_spec *spec);

/* Checks everything that can be checked without knowing the cluster. One sentence and a hint on failure. */
int job_spec_validate(const struct job_spec *spec, struct error *err);

/* What lists show as the job's name: its name, or the last path component of its first word. The caller frees
 * it. */
char *job_spec_display_name(const struct job_spec *spec);

/* FNV-1a over the encoded spec without its key: the same request hashes alike. Of an adoption it leaves out
 * what the agent completes, so that the request as it came and as it is kept hash alike too. */
uint64_t job_spec_hash(const struct job_spec *spec);

/*
 * A spec as the store keeps it, the submit key compares it and LAUNCH carries it: encoded once, then shared
 * and never changed. The last of its users frees it, on whatever thread that is.
 */
struct spec_bytes {
    uint32_t users;   // counted atomically
    char *submit_key; // or NULL
    uint64_t hash;    // job_spec_hash() of one with a submit key
    size_t length;    // 0: it could not be read
    uint8_t bytes[];
};

/* Of which the caller is the only user. NULL: of a spec that could not be read. */
struct spec_bytes *spec_bytes_new(const struct job_spec *spec);
/* The same of an encoded spec. -EBADMSG when it cannot be decoded. */
int spec_bytes_read(const void *bytes, size_t length, struct spec_bytes **ret, struct error *err);
struct spec_bytes *spec_bytes_hold(struct spec_bytes *bytes); // one user more; NULL stays NULL
void spec_bytes_drop(struct spec_bytes *bytes);               // one user less; NULL is harmless
void spec_bytes_dropp(struct spec_bytes **bytes);

/* The caller frees it. NULL of NULL, of one that could not be read, and of one that is over a limit by now.
 */
struct job_spec *spec_bytes_decode(const struct spec_bytes *bytes);

/* As LAUNCH carries it: with the name and the request that the job has by now. Nothing of a spec that could
 * not be read. The caller frees ret->bytes. */
void spec_bytes_pack(
    const struct spec_bytes *bytes, char *name, const struct job_ask *ask, struct record_bytes *ret);

void job_spec_clear(struct job_spec *spec);
void job_spec_free(struct job_spec *spec);
