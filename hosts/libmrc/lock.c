/* The mutex, errors, and lines on stderr. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void mt_lock(void) { pthread_mutex_lock(&mutex); }

void mt_unlock(void) { pthread_mutex_unlock(&mutex); }

int mt_wait_on(pthread_cond_t *condition, const struct timespec *until) {
    return until ? pthread_cond_timedwait(condition, &mutex, until) : pthread_cond_wait(condition, &mutex);
}

int mt_fail(int error) {
    if (error == 0) {
        return 0;
    }
    errno = error;
    return -1;
}

void *mt_null(int error) {
    errno = error;
    return NULL;
}

int mt_error(int error) {
    if (error) {
        errno = error;
    }
    return error;
}

const char *mt_device_name(void) {
    const char *name = getenv("MRC_TESTBED_DEVICE");
    return name && *name ? name : "mlx5_0";
}

void mt_say(const char *format, ...) {
    char line[512];
    int saved = errno;
    int start = snprintf(line, sizeof line, "mrc-testbed: %.63s: ", mt_device_name());
    va_list arguments;
    va_start(arguments, format);
    int rest = vsnprintf(line + start, sizeof line - (size_t)start - 1, format, arguments);
    va_end(arguments);
    size_t length = strnlen(line, sizeof line - 2);
    line[length] = '\n';
    if (rest >= 0 && write(STDERR_FILENO, line, length + 1) < 0) {
        errno = saved; /* nobody reads stderr: there is no other place to say so */
    }
    errno = saved;
}
