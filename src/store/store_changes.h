/* SPDX-License-Identifier: MIT */
/*
 * Checks the form of a changeset of SQLite's session extension before it is applied: SQLite 3.40 does not
 * terminate on some invalid bytes. https://www.sqlite.org/session/c_changesetapply.html; the format is
 * described in ext/session/sqlite3session.c of SQLite.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

/* 0, or -EUCLEAN if the bytes are not complete changes of tables, in order. */
int store_changes_check(const void *changes, size_t length, struct error *err);
