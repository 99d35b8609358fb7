/* SPDX-License-Identifier: MIT
 *
 * The configuration: the environment, read once, strictly. What is not understood is an error, and
 * an error means that nothing is allowed until it is mended: a limit that is silently not in force
 * is worse than none.
 *
 * Read at the first CUDA call, not at load: programs set variables for themselves before they start
 * CUDA. Any thread. A fork's child keeps what its parent read.
 */
#ifndef SHIM_CONFIG_H
#define SHIM_CONFIG_H

#include "log.h"

#include "gpulimit/region.h"

#include <stdbool.h>

enum { CONFIG_RULES = 32 };

/* One "device=limit" of GPU_LIMIT_MB. A plain limit is the rule "*". */
struct config_rule {
    enum { CONFIG_ANY, CONFIG_INDEX, CONFIG_UUID } scope;
    unsigned index;
    char uuid[48];  /* or a prefix of one */
    uint64_t bytes; /* 0: percent counts */
    double percent; /* of the card's memory */
};

struct config {
    struct text error; /* one line for people; empty when all is well */
    struct config_rule rules[CONFIG_RULES];
    unsigned rules_count; /* 0: no limit */
    enum gpulimit_count_mode count_mode;
    unsigned verbose;
    bool has_native_stacks, has_python_stacks; /* of allocations from stacks_min_bytes on */
    uint64_t stacks_min_bytes;                 /* below: the caller's address only */
    bool nvml_is_real;                         /* NVML is not to show the limit */
    char log[256];
    char dir[256];
    char report[256];          /* GPU_LIMIT_REPORT: "stderr" or a path; "" none */
    char report_dir[256];      /* "none": no reports; "": by default, see report_file.h */
    char runtime_dir[256];     /* XDG_RUNTIME_DIR, "" if it is none */
    char termination_log[256]; /* "" for none */
    char limit_text[128];      /* GPU_LIMIT_MB as it was set; "" if it was not */
};

/* The configuration of this process, read on the first call. */
const struct config *config_get(void);

/* Parses an environment into *config. config_get is this with the process's own. */
void config_parse(struct config *config, char *const environment[]);

/* The limit in bytes that the rules set for a device; GPULIMIT_NO_LIMIT without rules, 0 for a
 * device that rules leave unnamed. total_bytes: the card's memory. */
uint64_t config_limit_for(const struct config *config, unsigned index, const char *uuid,
                          uint64_t total_bytes);

#endif
