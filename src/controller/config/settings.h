/* SPDX-License-Identifier: MIT */
/* mgpud's settings: defaults, depending on the user who starts it, then configuration files, then the command
 * line. All use one table. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/options.h"
#include "controller/config/options.h"

/* Sets every field of `options` for a start as root or as a normal user: the defaults of the tables, which
 * are the documented ones, and the paths that depend on the user. -ENOENT: a rootless start without HOME. */
int settings_default(struct controller_options *options, bool is_root, struct error *err);

/* Actions on the command line, besides settings. */
struct settings_actions {
    bool migrate; // put the store into etcd; mgpud is started
    bool leave_cluster;
    bool fsck, stop, reload, check_config, example_config, help, version;
    const char *backup, *restore; // file; points into argv
};

/*
 * Parses argv after the defaults and the configuration files: those of --config, else the default ones if
 * they exist (/etc/mgpu/mgpu.yaml as root, otherwise mgpu/mgpu.yaml in the user's configuration directory),
 * each followed by its drop-ins, FILE.d/NAME.yaml in order of name. Prints nothing.
 */
int settings_read(int argc, char **argv, bool is_root, struct controller_options *options,
    struct settings_actions *ret_actions, struct error *err);

void settings_print_help(void);

/* Prints a configuration file with every setting, commented out. */
void settings_print_example(void);

/* Sets one key of a file, named like the long option. `origin` is "FILE:LINE". */
int settings_set(struct controller_options *options, const char *key, const char *value, const char *origin,
    struct error *err);

/* settings_live.c: takes the settings that can be changed while mgpud runs from `fresh`, which receives the
 * previous values that must be freed. All others stay unchanged. */
void settings_take_up(struct controller_options *options, struct controller_options *fresh);

/* config.c: reads a YAML file with one mapping of keys to values. Errors include file and line. */
int config_read(const char *path, struct controller_options *options, struct error *err);

void settings_clear(struct controller_options *options);

/* --- settings_notes.c: which settings are set, and where --- */

/* Replaces an earlier note of the same key. `value` NULL: a flag. */
void settings_note(
    struct controller_options *options, const char *key, const char *value, const char *origin);
void settings_note_file(struct controller_options *options, const char *path); // records that it was read
/* NULL: not set. */
const struct setting_note *settings_find_note(const struct controller_options *options, const char *key);

struct setting {
    const char *key, *value, *origin, *help; // value: NULL if it has none; origin: "default" or as noted
    bool is_live;                            // can be changed while mgpud runs
};

typedef void settings_visit_fn(void *arg, const struct setting *setting);

/* Visits every setting in the order of the help, then those of single users, groups and roles. */
void settings_visit(const struct controller_options *options, settings_visit_fn *visit, void *arg);

/* Calls `visit` for each setting that differs between `before` and `after`. */
typedef void settings_change_fn(
    void *arg, const struct setting *setting, const char *before, const char *after);
void settings_compare(const struct controller_options *before, const struct controller_options *after,
    settings_change_fn *visit, void *arg);

/* The tables allowed in files, for settings_notes.c. */
struct settings_table {
    const struct option_row *rows;
    bool is_live;
};

extern const struct settings_table settings_tables[]; // terminated by NULL rows
