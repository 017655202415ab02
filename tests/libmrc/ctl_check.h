/* SPDX-License-Identifier: Apache-2.0 */
/* For test programs of the controller API: says what failed, and ends. */
#ifndef CTL_CHECK_H
#define CTL_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

#define EQUAL(value, wanted) \
    do { \
        long long got_ = (long long)(value), wanted_ = (long long)(wanted); \
        if (got_ != wanted_) { \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #value, got_, wanted_); \
            exit(1); \
        } \
    } while (0)

#endif
