/* SPDX-License-Identifier: MIT */
/* Converts between a row of the jobs table and struct job: binding, reading, copying and comparing use one
 * table. */
#pragma once

#include <sqlite3.h>

#include "base/error.h"
#include "base/record.h"
#include "job/job.h"

/* The column with the GPUs of a job. */
extern const struct record_type store_row_grants_record;

/* "INSERT INTO jobs ...", "UPDATE jobs ... WHERE id = ?1" and "SELECT ... FROM jobs" with every column, in
 * the order of store_row_bind and store_row_read. The caller frees the text. */
char *store_row_insert_sql(void);
char *store_row_update_sql(void);
char *store_row_select_sql(const char *where);

/* Binds every column. The statement borrows the job's texts until it is reset. */
int store_row_bind(sqlite3_stmt *statement, const struct job *job);

/* The job of the current row, which the caller frees; -EUCLEAN if the row is not a valid job. */
int store_row_read(sqlite3_stmt *statement, struct job **ret, struct error *err);

struct job *store_row_copy(const struct job *job);

/* The name of the first column in which the two differ, NULL if they are equal. */
const char *store_row_difference(const struct job *a, const struct job *b);
