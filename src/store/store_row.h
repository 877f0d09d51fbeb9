/* SPDX-License-Identifier: MIT */
/* One row of the jobs table is one struct job: binding, reading, copying and comparing from one table. */
#pragma once

#include <sqlite3.h>

#include "base/error.h"
#include "job/job.h"

/* "INSERT INTO jobs ...", "UPDATE jobs ... WHERE id = ?1" and "SELECT ... FROM jobs" with every column, in
 * the order in which store_row_bind and store_row_read take them. The caller frees the text. */
char *store_row_insert_sql(void);
char *store_row_update_sql(void);
char *store_row_select_sql(const char *where);

/* Binds every column. The statement borrows the job's text, which must stay until it is reset. */
int store_row_bind(sqlite3_stmt *statement, const struct job *job);

/* The job of the current row, which the caller frees; -EUCLEAN when the row cannot be a job. */
int store_row_read(sqlite3_stmt *statement, struct job **ret, struct error *err);

struct job *store_row_copy(const struct job *job);

/* The name of the first column in which the two differ, NULL when they are the same. */
const char *store_row_difference(const struct job *a, const struct job *b);
