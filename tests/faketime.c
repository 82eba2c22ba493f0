/* A clock that a test winds. Loaded before everything else by LD_PRELOAD, it stands between a program and the C library.

   What the clock shows is in a file that all processes have mapped: a list of settings, and how many of them there are.
   A setting is written whole before it is counted, so nobody needs a lock. Waits are cut into slices, so that a clock
   that is wound forward wakes who sleeps. A program that cannot open the file has the real time.

   Not touched: processor time, short naps (libraries that count their own patience keep it), timers of the kernel, times
   of files. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SETTINGS 8191
#define SECOND 1000000000LL
#define MILLISECOND 1000000LL
#define SLICE (20 * MILLISECOND)
#define LEAST MILLISECOND             /* no wait is shorter, unless it was asked to be */
#define SWITCH (5 * MILLISECOND)      /* the same for conditions: an interpreter lets go of its lock that often */
#define NAP (500 * MILLISECOND)       /* what is shorter is the patience of a library, such as that of SQLite */
#define DAY_OF_WALL_CLOCKS 500000000LL /* seconds: no machine has been up for that long */

struct setting {
    int64_t since;   /* real monotonic time */
    int64_t ahead;   /* how far both clocks were ahead then */
    int64_t jumped;  /* how far the wall clock is ahead beyond that */
    double speed;
};

struct clock_file {
    volatile uint32_t count;
    uint32_t unused[7];
    struct setting settings[SETTINGS];
};

static const struct clock_file *shown;
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
static int (*real_epoll)(int, struct epoll_event *, int, int, const sigset_t *);
static int (*real_poll)(struct pollfd *, nfds_t, int);
static int (*real_select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
static int (*real_semaphore)(sem_t *, clockid_t, const struct timespec *);
static int (*real_condition)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);

static void *next_of(const char *name) { return dlsym(RTLD_NEXT, name); }

__attribute__((constructor)) static void begin(void) {
    if (real_gettime) return;
    real_nanosleep = next_of("clock_nanosleep");
    real_epoll = next_of("epoll_pwait");
    real_poll = next_of("poll");
    real_select = next_of("select");
    real_semaphore = next_of("sem_clockwait");
    real_condition = next_of("pthread_cond_clockwait");
    const char *path = getenv("GENBA_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *place = mmap(NULL, sizeof(struct clock_file), PROT_READ, MAP_SHARED, file, 0);
        if (place != MAP_FAILED) shown = place;
        close(file);
    }
    real_gettime = next_of("clock_gettime");
}

static int64_t nanoseconds(const struct timespec *time) { return time->tv_sec * SECOND + time->tv_nsec; }

static void write_time(int64_t from, struct timespec *time) {
    time->tv_sec = from / SECOND;
    time->tv_nsec = from % SECOND;
}

static const struct setting *now_set(void) {
    static const struct setting plain = {0, 0, 0, 1.0};
    uint32_t count = shown ? __atomic_load_n(&shown->count, __ATOMIC_ACQUIRE) : 0;
    return count ? &shown->settings[count - 1] : &plain;
}

static int is_wall(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

static int is_steady(clockid_t clock) {
    return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_MONOTONIC_COARSE ||
           clock == CLOCK_BOOTTIME;
}

static int64_t real_now(clockid_t clock) {
    struct timespec time;
    real_gettime(clock, &time);
    return nanoseconds(&time);
}

static int64_t shown_now(clockid_t clock) {
    const struct setting *set = now_set();
    int64_t real = real_now(clock);
    if (!is_wall(clock) && !is_steady(clock)) return real;
    int64_t run = real_now(CLOCK_MONOTONIC) - set->since;
    int64_t ahead = set->speed == 1.0 ? 0 : (int64_t)((double)run * (set->speed - 1.0));
    return real + set->ahead + ahead + (is_wall(clock) ? set->jumped : 0);
}

/* How long to really wait now for what is that far away on the clock. */
static int64_t slice(int64_t remaining, int64_t least) {
    int64_t real = (int64_t)((double)remaining / now_set()->speed);
    if (real < least) real = remaining < least ? remaining : least;
    return real < SLICE ? real : SLICE;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    begin();
    if (!shown || (!is_wall(clock) && !is_steady(clock))) return real_gettime(clock, time);
    write_time(shown_now(clock), time);
    return 0;
}

int gettimeofday(struct timeval *time, void *zone) {
    (void)zone;
    begin();
    int64_t now = shown_now(CLOCK_REALTIME);
    time->tv_sec = now / SECOND;
    time->tv_usec = now % SECOND / 1000;
    return 0;
}

time_t time(time_t *place) {
    begin();
    time_t now = shown_now(CLOCK_REALTIME) / SECOND;
    if (place) *place = now;
    return now;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *asked, struct timespec *rest) {
    begin();
    if (!shown || (!is_wall(clock) && !is_steady(clock))) return real_nanosleep(clock, flags, asked, rest);
    int64_t until = nanoseconds(asked) + (flags & TIMER_ABSTIME ? 0 : shown_now(clock));
    for (;;) {
        int64_t remaining = until - shown_now(clock);
        if (remaining <= 0) return 0;
        struct timespec part;
        write_time(slice(remaining, LEAST), &part);
        int failed = real_nanosleep(CLOCK_MONOTONIC, 0, &part, NULL);
        if (!failed) continue;
        remaining = until - shown_now(clock);
        if (rest && !(flags & TIMER_ABSTIME)) write_time(remaining > 0 ? remaining : 0, rest);
        return failed;
    }
}

int nanosleep(const struct timespec *asked, struct timespec *rest) {
    begin();
    int failed = nanoseconds(asked) < NAP ? real_nanosleep(CLOCK_MONOTONIC, 0, asked, rest)
                                          : clock_nanosleep(CLOCK_MONOTONIC, 0, asked, rest);
    errno = failed;
    return failed ? -1 : 0;
}

/* The milliseconds of one slice, rounded up; 0 when the time has come. */
static int milliseconds(int64_t until) {
    int64_t remaining = until - shown_now(CLOCK_MONOTONIC);
    return remaining <= 0 ? 0 : (int)((slice(remaining, LEAST) + MILLISECOND - 1) / MILLISECOND);
}

int epoll_pwait(int handle, struct epoll_event *events, int most, int timeout, const sigset_t *mask) {
    begin();
    if (!shown || timeout <= 0) return real_epoll(handle, events, most, timeout, mask);
    int64_t until = shown_now(CLOCK_MONOTONIC) + timeout * MILLISECOND;
    for (;;) {
        int part = milliseconds(until);
        int found = real_epoll(handle, events, most, part, mask);
        if (found || !part) return found;
    }
}

int epoll_wait(int handle, struct epoll_event *events, int most, int timeout) {
    return epoll_pwait(handle, events, most, timeout, NULL);
}

int poll(struct pollfd *handles, nfds_t count, int timeout) {
    begin();
    if (!shown || timeout <= 0) return real_poll(handles, count, timeout);
    int64_t until = shown_now(CLOCK_MONOTONIC) + timeout * MILLISECOND;
    for (;;) {
        int part = milliseconds(until);
        int found = real_poll(handles, count, part);
        if (found || !part) return found;
    }
}

int select(int count, fd_set *reading, fd_set *writing, fd_set *failing, struct timeval *timeout) {
    begin();
    if (!shown || !timeout) return real_select(count, reading, writing, failing, timeout);
    int64_t until = shown_now(CLOCK_MONOTONIC) + timeout->tv_sec * SECOND + timeout->tv_usec * 1000LL;
    fd_set asked[3], *sets[3] = {reading, writing, failing};
    for (int each = 0; each < 3; each++)
        if (sets[each]) asked[each] = *sets[each];
    for (;;) {
        int part = milliseconds(until);
        struct timeval wait = {part / 1000, part % 1000 * 1000};
        for (int each = 0; each < 3; each++)
            if (sets[each]) *sets[each] = asked[each];
        int found = real_select(count, reading, writing, failing, &wait);
        if (found || !part) return found;
    }
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until) {
    begin();
    if (!shown) return real_semaphore(semaphore, clock, until);
    for (;;) {
        int64_t remaining = nanoseconds(until) - shown_now(clock);
        struct timespec part;
        write_time(real_now(CLOCK_MONOTONIC) + (remaining > 0 ? slice(remaining, LEAST) : 0), &part);
        if (!real_semaphore(semaphore, CLOCK_MONOTONIC, &part)) return 0;
        if (errno != ETIMEDOUT || remaining <= 0) return -1;
    }
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until) {
    return sem_clockwait(semaphore, CLOCK_REALTIME, until);
}

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *lock, clockid_t clock,
                           const struct timespec *until) {
    begin();
    if (!shown) return real_condition(condition, lock, clock, until);
    for (;;) {
        int64_t remaining = nanoseconds(until) - shown_now(clock);
        struct timespec part;
        write_time(real_now(CLOCK_MONOTONIC) + (remaining > 0 ? slice(remaining, SWITCH) : 0), &part);
        int failed = real_condition(condition, lock, CLOCK_MONOTONIC, &part);
        if (failed != ETIMEDOUT || remaining <= 0) return failed;
    }
}

/* Which clock a condition goes by is not told. A wall clock shows more than any machine has been up. */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until) {
    clockid_t clock = until->tv_sec > DAY_OF_WALL_CLOCKS ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    return pthread_cond_clockwait(condition, lock, clock, until);
}
