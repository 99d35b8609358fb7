/* SPDX-License-Identifier: MIT
 *
 * The values of gpulimit-stat's options: numbers, lists and choices, read strictly. Each function
 * returns false after it has printed what is wrong with the value. Only options.c includes this.
 */
#ifndef GPULIMIT_TOOLS_OPTIONS_VALUES_H
#define GPULIMIT_TOOLS_OPTIONS_VALUES_H

#include "options.h"

/* Prints one line and where to find help. */
__attribute__((format(printf, 1, 2))) void values_complain(const char *format, ...);

/* The complaint about what getopt did not accept: `letter` is its optopt. */
void values_complain_option(const char *word, int letter);

/* True if a word on the command line is meant as a number. */
bool values_is_number(const char *word);

/* Lists are separated by commas, and add to what is there. */
bool values_add_pids(const char *list, struct view_filter *filter);
bool values_add_users(const char *list, struct view_filter *filter);
bool values_add_gpus(const char *list, struct view_filter *filter);
void values_add_folder(const char *folder, struct options *options);

/* Frees all lists. */
void values_drop(struct options *options);

bool values_read_key(const char *word, enum groups_key *key);
bool values_read_color(const char *word, enum color *color);

/* A number from 1; `name` is what the complaint calls it. */
bool values_read_count(const char *name, const char *word, uint64_t *count);

/* A number from 0, likewise. */
bool values_read_whole(const char *name, const char *word, uint64_t *number);

/* "5%" or "5", in hundredths of a per cent. */
bool values_read_percent(const char *name, const char *word, uint64_t *hundredths);

/* Bytes: "4096", "64K", "1M", "1.5G", "900MiB". */
bool values_read_size(const char *name, const char *word, uint64_t *bytes);

/* Whole seconds: "90", "90s", "10m", "2h", "1d". */
bool values_read_age(const char *name, const char *word, uint64_t *seconds);

/* Seconds, from 0.1. */
bool values_read_delay(const char *word, uint64_t *delay_ns);

#endif
