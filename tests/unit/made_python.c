/* SPDX-License-Identifier: MIT
 *
 * A library that passes for one of Python's, for test_python_interpreter: it says who asked.
 */
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT uint64_t PyCode_Type[8], PyUnicode_Type[8], PyBytes_Type[8], _PyRuntime[8];
EXPORT int made_python_asked;
EXPORT const char *Py_GetVersion(void);
EXPORT const void *PyGILState_GetThisThreadState(void);
EXPORT int _Py_IsFinalizing(void);

const char *Py_GetVersion(void)
{
    return "3.9.99 (made up)";
}

const void *PyGILState_GetThisThreadState(void)
{
    made_python_asked++;
    return NULL;
}

int _Py_IsFinalizing(void)
{
    return 0;
}
