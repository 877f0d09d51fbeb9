/* SPDX-License-Identifier: MIT */
/* The order of jobs on the screen: two keys, each up or down. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define ORDER_KEYS 2

struct order {
    struct {
        int key; // a row of order_keys; -1: none
        bool is_down;
    } by[ORDER_KEYS];
};

struct order_key {
    const char *name, *help;
};

extern const struct order_key order_keys[]; // ended by a NULL name

/* "state,-wait": at most two, with a minus from the largest on. */
int order_parse(const char *text, struct order *ret, struct error *err);

/* The same as text. The caller frees it. */
char *order_text(const struct order *order);

/* Makes a key the first one and keeps the old one as the second; the same key again turns it round. */
void order_choose(struct order *order, int key);

/* The key of that name, or -1. */
int order_find(const char *name);

/* Sorts objects of jobs; jobs that are alike are in order of their numbers. */
void order_sort(const struct order *order, json_t **jobs, size_t count);
