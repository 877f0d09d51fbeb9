/* SPDX-License-Identifier: MIT */
/* An error message for users, with an optional hint. */
#pragma once

struct error {
    int code;          // negative errno of the first failure, 0 when nothing failed
    char message[512]; // one sentence that names the object and the value
    char hint[256];    // what to type or check next; empty if there is no hint
    unsigned kind;     // by which a caller may tell failures apart that a table of its own names; 0: not set
};

/* Writes the message and returns `code`, so that a caller can `return error_set(...)`. `err` may be NULL. */
int error_set(struct error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Like error_set, and appends ": " with the text of `code` as an errno. */
int error_set_errno(struct error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prepends "context: " to the message and returns its code. */
int error_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets the kind and returns `code`. `err` may be NULL. */
int error_mark(struct error *err, unsigned kind, int code);

/* Replaces the code, keeps the sentences, and returns the code. `err` may be NULL. */
int error_recode(struct error *err, int code);

/* Sets the hint and returns the existing code. */
int error_hint(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
