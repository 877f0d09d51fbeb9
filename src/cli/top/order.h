/* SPDX-License-Identifier: MIT */
/* The order of jobs on the screen: two keys, each ascending or descending. */
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

extern const struct order_key order_keys[]; // terminated by a NULL name

/* "state,-wait": at most two keys; a minus means descending. */
int order_parse(const char *text, struct order *ret, struct error *err);

/* The same as text. The caller frees it. */
char *order_text(const struct order *order);

/* Makes a key the first one and the old one the second; choosing the same key again reverses it. */
void order_choose(struct order *order, int key);

/* The key of that name, or -1. */
int order_find(const char *name);

/* Sorts objects of jobs; equal ones are ordered by number. */
void order_sort(const struct order *order, json_t **jobs, size_t count);
