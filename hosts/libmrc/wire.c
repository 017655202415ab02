/* Records out, records in, and waiting for them. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

int mt_send_now(struct mt_connection *connection, const union mt_record *records, unsigned count) {
    int error = mt_usable(connection);
    if (error) {
        return error;
    }
    ssize_t sent;
    do {
        sent = send(connection->fd, records, count * sizeof *records, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) {
        return 0;
    }
    if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
        return EAGAIN;
    }
    mt_drain(connection); /* what the daemon said before its end still counts */
    mt_died(connection);
    return EIO;
}

void mt_wait_to_send(struct mt_connection *connection) {
    struct pollfd waiting = {.fd = connection->fd, .events = POLLOUT};
    mt_unlock();
    poll(&waiting, 1, 10);
    mt_lock();
}

int mt_send(struct mt_connection *connection, const union mt_record *records, unsigned count) {
    int error;
    while ((error = mt_send_now(connection, records, count)) == EAGAIN) {
        mt_wait_to_send(connection);
    }
    return error;
}

uint64_t mt_new_token(struct mt_connection *connection) { return ++connection->last_token; }

static void in_future(struct timespec *when, int milliseconds) {
    clock_gettime(CLOCK_MONOTONIC, when);
    when->tv_sec += milliseconds / 1000;
    when->tv_nsec += milliseconds % 1000 * 1000000L;
    if (when->tv_nsec >= 1000000000L) {
        when->tv_sec++;
        when->tv_nsec -= 1000000000L;
    }
}

static bool is_over(const struct timespec *when) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > when->tv_sec || (now.tv_sec == when->tv_sec && now.tv_nsec >= when->tv_nsec);
}

static int await(struct mt_connection *connection, const struct mt_waiter *waiter) {
    struct timespec most;
    in_future(&most, MT_REPLY_SECONDS * 1000);
    mt_drain(connection);
    while (!waiter->done) {
        if (connection->dead) {
            return EIO;
        }
        if (is_over(&most)) {
            mt_say("the daemon has not answered for %d s", MT_REPLY_SECONDS);
            mt_died(connection);
            return EIO;
        }
        mt_wait(connection, 1);
    }
    return 0;
}

static void forget(struct mt_connection *connection, const struct mt_waiter *waiter) {
    struct mt_waiter **place = &connection->waiters;
    while (*place != waiter) {
        place = &(*place)->next;
    }
    *place = waiter->next;
}

static int error_of(const struct mt_reply *reply) {
    if (reply->error && reply->text[0]) {
        mt_say("%.*s", MT_TEXT_BYTES, reply->text);
    }
    return reply->error > 4095 ? EIO : (int)reply->error;
}

int mt_request(struct mt_connection *connection, union mt_record *request, union mt_record *reply) {
    union mt_record answer;
    struct mt_waiter waiter = {.next = connection->waiters, .token = mt_new_token(connection), .reply = &answer};
    connection->waiters = &waiter;
    request->token = waiter.token;
    int error = mt_send(connection, request, 1);
    if (error == 0) {
        error = await(connection, &waiter);
    }
    forget(connection, &waiter);
    if (error) {
        return error;
    }
    if (reply) {
        *reply = answer;
    }
    return error_of(&answer.reply);
}

/* The daemon sends a record before it adds to async_fd, so what has been taken may not be there yet. */
static void settle_async(struct mt_connection *connection) {
    uint64_t one;
    while (connection->async_owed > 0 && read(connection->async_fd, &one, sizeof one) == sizeof one) {
        connection->async_owed--;
    }
}

/* One datagram. False: there is none. */
static bool take(struct mt_connection *connection) {
    union mt_record records[MT_MOST_NEWS];
    ssize_t bytes = recv(connection->fd, records, sizeof records, MSG_DONTWAIT | MSG_TRUNC);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
        return errno == EINTR;
    }
    bool good = bytes > 0 && (size_t)bytes <= sizeof records && bytes % MT_RECORD_BYTES == 0;
    for (ssize_t i = 0; good && i < bytes / MT_RECORD_BYTES; i++) {
        good = mt_dispatch(connection, &records[i]);
    }
    if (!good) {
        if (bytes > 0) {
            mt_say("the daemon sends what is no record of version %d", MT_VERSION);
        }
        mt_died(connection);
    }
    return good;
}

void mt_drain(struct mt_connection *connection) {
    bool any = false;
    while (!connection->dead && !connection->forked && take(connection)) {
        any = true;
    }
    if (connection->async_owed > 0) {
        settle_async(connection);
    }
    if (any) {
        pthread_cond_broadcast(&connection->news);
    }
}

static void wait_for_listener(struct mt_connection *connection, int milliseconds) {
    struct timespec until;
    if (milliseconds >= 0) {
        in_future(&until, milliseconds);
    }
    mt_wait_on(&connection->news, milliseconds < 0 ? NULL : &until);
}

void mt_wait(struct mt_connection *connection, int milliseconds) {
    if (mt_usable(connection)) {
        return;
    }
    if (connection->listening) {
        wait_for_listener(connection, milliseconds);
        return;
    }
    struct pollfd waiting = {.fd = connection->fd, .events = POLLIN};
    connection->listening = true;
    mt_unlock();
    poll(&waiting, 1, milliseconds);
    mt_lock();
    connection->listening = false;
    mt_drain(connection);
    pthread_cond_broadcast(&connection->news); /* another may listen now */
}
