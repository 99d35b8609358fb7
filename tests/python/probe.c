/* SPDX-License-Identifier: MIT
 *
 * What the Python programs of these tests load by ctypes, as if it were a hook: it says what frames
 * the calling thread has.
 */
#include "python_frames.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { PROBE_FRAMES = 40, PROBE_TEXT = 128 };

#define EXPORT __attribute__((visibility("default")))

EXPORT int probe_frames(char *text, int bytes, int most);
EXPORT int probe_frames_elsewhere(void);
EXPORT double probe_microseconds(int rounds);
EXPORT void probe_call(void (*function)(void));

/* A line "FILE:LINE FUNCTION" a frame, each name by its last 128 bytes. Returns how many. */
int probe_frames(char *text, int bytes, int most)
{
    struct python_frame frames[PROBE_FRAMES];
    unsigned count = python_frames(frames, most < PROBE_FRAMES ? (unsigned)most : PROBE_FRAMES);
    int used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < count && used < bytes; i++) {
        char file[PROBE_TEXT], function[PROBE_TEXT];
        int file_bytes = (int)python_text_copy(file, PROBE_TEXT, &frames[i].file);
        int function_bytes = (int)python_text_copy(function, PROBE_TEXT, &frames[i].function);
        used += snprintf(text + used, (size_t)(bytes - used), "%.*s:%d %.*s\n", file_bytes, file,
                         (int)frames[i].line, function_bytes, function);
    }
    return (int)count;
}

static void *probe_elsewhere(void *argument)
{
    struct python_frame frames[PROBE_FRAMES];
    *(int *)argument = (int)python_frames(frames, PROBE_FRAMES);
    return NULL;
}

/* The same from a thread that Python knows nothing of. */
int probe_frames_elsewhere(void)
{
    pthread_t thread;
    int count = -1;
    if (pthread_create(&thread, NULL, probe_elsewhere, &count) == 0)
        pthread_join(thread, NULL);
    return count;
}

double probe_microseconds(int rounds)
{
    struct python_frame frames[PROBE_FRAMES];
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < rounds; i++)
        python_frames(frames, PROBE_FRAMES);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) /
           rounds / 1e3;
}

/* Back into Python by way of C. */
void probe_call(void (*function)(void))
{
    function();
}
