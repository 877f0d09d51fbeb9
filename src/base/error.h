/* SPDX-License-Identifier: MIT */
/* A failure told as a sentence for people, with a hint they can act on. */
#pragma once

struct error {
    int code;          // negative errno of the first failure, 0 when nothing failed
    char message[512]; // one sentence that names the thing and the value
    char hint[256];    // what to type or look at next; empty when there is nothing useful to say
};

/* Writes the sentence and returns `code`, so that a caller can `return error_set(...)`. `err` may be NULL. */
int error_set(struct error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Like error_set, and appends ": " with the text of `code` as an errno. */
int error_set_errno(struct error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the sentence already there and returns its code. */
int error_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets the hint and returns the code already there. */
int error_hint(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
