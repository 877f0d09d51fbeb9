/* SPDX-License-Identifier: MIT */
/* mgpud's settings: defaults by who starts it, then the files, then the command line. One table serves all.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/options.h"
#include "controller/config/options.h"

/* Fills every field of `options` for a start as root or as a normal user: from the defaults of the tables,
 * which are those that people are shown, and the places that depend on who starts it. -ENOENT: a rootless
 * start without HOME. */
int settings_default(struct controller_options *options, bool is_root, struct error *err);

/* What the command line asks for besides settings. */
struct settings_wish {
    bool fsck, stop, check_config, example_config, help, version;
    const char *backup, *restore; // file; of argv
};

/*
 * Reads argv over the defaults, with the files in between: those named by --config, else the usual ones where
 * they exist (/etc/mgpu/mgpu.yaml as root, mgpu/mgpu.yaml in the user's configuration directory else), each
 * followed by its drop-ins, FILE.d/NAME.yaml in the order of their names. Prints nothing.
 */
int settings_read(int argc, char **argv, bool is_root, struct controller_options *options,
    struct settings_wish *ret_wish, struct error *err);

void settings_print_help(void);

/* A configuration file with every setting, commented out. */
void settings_print_example(void);

/* One key of a file: the long option of that name. `origin` is "FILE:LINE". */
int settings_set(struct controller_options *options, const char *key, const char *value, const char *origin,
    struct error *err);

/* config.c: a YAML file with one mapping of keys to values. Errors name file and line. */
int config_read(const char *path, struct controller_options *options, struct error *err);

void settings_clear(struct controller_options *options);

/* --- settings_notes.c: what is set, and where --- */

/* A later note of the same key takes the place of the one before. `value` NULL: a flag. */
void settings_note(
    struct controller_options *options, const char *key, const char *value, const char *origin);
void settings_note_file(struct controller_options *options, const char *path); // it was read
/* NULL: nobody said anything about it. */
const struct setting_note *settings_find_note(const struct controller_options *options, const char *key);

struct setting {
    const char *key, *value, *origin, *help; // value: NULL when it has none; origin: "default" or as noted
    bool is_live;                            // a change is taken up while mgpud runs
};

typedef void settings_visit_fn(void *arg, const struct setting *setting);

/* Every setting in the order of the help, then those of single users, groups and roles. */
void settings_visit(const struct controller_options *options, settings_visit_fn *visit, void *arg);

/* Calls `visit` with what is set otherwise in `after` than in `before`. */
typedef void settings_change_fn(
    void *arg, const struct setting *setting, const char *before, const char *after);
void settings_compare(const struct controller_options *before, const struct controller_options *after,
    settings_change_fn *visit, void *arg);

/* The tables that the files may use, for settings_notes.c. */
struct settings_table {
    const struct option_row *rows;
    bool is_live;
};

extern const struct settings_table settings_tables[]; // ended by NULL rows
