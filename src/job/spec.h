/* SPDX-License-Identifier: MIT */
/* The spec of a job: the immutable part of a request, with its limits and validation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/record.h"
#include "base/strings.h"
#include "job/ask.h"

#define SPEC_COMMAND_MAX (256U << 10) // of all words
#define SPEC_ENV_MAX     (1U << 20)   // of all entries
#define SPEC_PATH_MAX    4096U
#define SPEC_NAME_MAX    128U
#define SPEC_SETUP_MAX   (64U << 10)
#define SPEC_SCRIPT_MAX  (1U << 20)
#define SPEC_TTY_MAX     4096U // rows or columns of a terminal
#define SPEC_GPUS_MAX    ASK_GPUS_MAX

struct job_spec {
    struct strings command; // argv, at least one word
    struct strings env;     // the submitter's environment
    char *name;             // NULL: the first word of the command is shown
    char *cwd;              // absolute
    char *cwd_fallback;     // used on a node without cwd: absolute, "home" or "tmp"; NULL: the start fails
    char *setup;            // shell text run before the command, or NULL
    char *script;           // text of the script that `command` begins with, or NULL: the file itself is run
    char *output;           // file for stdout and stderr, %j and %n replaced; NULL: the default log
    char *error;            // file for stderr alone, likewise; NULL: that of stdout
    char *input;            // file for stdin, likewise; NULL: /dev/null; SPEC_INPUT_SENT: a client sends it
    bool truncate;          // each attempt truncates these output files first; else output is appended
    char *image;            // container image that the command runs in, or NULL
    struct strings image_mounts; // SRC[:DST[:ro]]: additional mounts
    char *image_runtime;         // podman or apptainer; NULL: the one installed on the node
    struct job_ask ask;          // what it needs and when
    char *submit_key;            // random text that identifies a repeated submit, or NULL
    uint32_t umask;
    bool hold;                      // submitted held
    bool tty;                       // runs on a terminal
    uint32_t tty_rows, tty_columns; // its size at the start; 0: 24 by 80
};

#define SPEC_FILE_CODES "jnaAhr%" // after % in the names of these files, possibly with a width
#define SPEC_CWD_HOME   "home"
#define SPEC_INPUT_SENT "-" // as input: a client sends it (GET /jobs/ID/input)
#define SPEC_CWD_TMP    "tmp"

/* Checks a fallback directory. On failure sets a sentence that names `what`, and a hint. */
int job_spec_check_fallback(const char *what, const char *value, struct error *err);

extern const struct record_type job_spec_record;
extern const struct record_type job_spec_editable_record; // what can change after the submit

/* True if a person may be at its other end: it runs on a terminal, or reads what a client sends. */
bool job_spec_is_interactive(const struct job_spec *spec);

/* A spec with the defaults: one GPU, priority 0, umask 022. */
void job_spec_init(struct job_spec *spec);

/* Checks everything that does not depend on the cluster. On failure sets one sentence and a hint. */
int job_spec_validate(const struct job_spec *spec, struct error *err);

/* For a job with its own /tmp: its directory must be there, and its output outlive it. -EINVAL with a
 * hint.
 */
int job_spec_check_private_tmp(const struct job_spec *spec, struct error *err);

/* True if a client sends its standard input while it runs. */
bool job_spec_has_sent_input(const struct job_spec *spec);

/* The job's name in listings: its name, or the last path component of its first word. The caller frees it. */
char *job_spec_display_name(const struct job_spec *spec);

/* FNV-1a over the encoded spec without its key: equal requests have equal hashes. For an adoption, fields
 * filled in by the agent are excluded, so the request has the same hash as received and as stored. */
uint64_t job_spec_hash(const struct job_spec *spec);

/*
 * An encoded spec, as stored, compared for submit keys, and carried by LAUNCH. Encoded once, then shared and
 * immutable. The last user frees it, on any thread.
 */
struct spec_bytes {
    uint32_t users;   // reference count, atomic
    char *submit_key; // or NULL
    uint64_t hash;    // job_spec_hash(), if there is a submit key
    size_t length;    // 0: unreadable
    uint8_t bytes[];
};

/* Encodes a spec; the caller holds the only reference. NULL: a spec that could not be read. */
struct spec_bytes *spec_bytes_new(const struct job_spec *spec);
/* The same from an encoded spec. -EBADMSG if it cannot be decoded. */
int spec_bytes_read(const void *bytes, size_t length, struct spec_bytes **ret, struct error *err);
struct spec_bytes *spec_bytes_hold(struct spec_bytes *bytes); // adds a reference; NULL returns NULL
void spec_bytes_drop(struct spec_bytes *bytes);               // drops a reference; NULL is allowed
void spec_bytes_dropp(struct spec_bytes **bytes);

/* Decodes it; the caller frees the result. NULL for NULL, for an unreadable spec, and for one that now
 * exceeds a limit. */
struct job_spec *spec_bytes_decode(const struct spec_bytes *bytes);

/* The form that LAUNCH carries: with the current name and request of the job. Empty for an unreadable spec.
 * The caller frees ret->bytes. */
void spec_bytes_pack(
    const struct spec_bytes *bytes, char *name, const struct job_ask *ask, struct record_bytes *ret);

void job_spec_clear(struct job_spec *spec);
void job_spec_free(struct job_spec *spec);
