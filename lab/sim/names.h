/* SPDX-License-Identifier: MIT */
/* Interns texts: users, groups and GPU models of a trace, numbered by first occurrence. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct names {
    char **items; // by number
    size_t count;
    uint32_t *buckets; // number plus 1; 0: empty
    size_t n_buckets;
};

/* The number of a text, which is copied if it is new. */
uint32_t names_number(struct names *names, const char *text);
void names_clear(struct names *names);

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length); // FNV-1a; begin with HASH_START
#define HASH_START 14695981039346656037ULL
