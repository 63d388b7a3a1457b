/* Makes calls of the C library fail, and clocks stand still, in the processes that preload it (LD_PRELOAD).

   What fails is in a small file that the process maps: tests/helpers/attacks.py writes it while the process runs. A
   process that has not called attack_from, and has no ATTACKED_FROM in its environment, is left alone. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { OPEN = 1, READ = 2, STAT = 4, LIST = 8, LINK = 16, RENAME = 32, WRITE = 64, SYNC = 128, REMOVE = 256, LOCK = 512 };

struct rule {
    char part[64];     /* of the path */
    uint32_t calls;    /* which fail: the sum of the numbers above */
    int32_t error;     /* errno */
    uint32_t millionth; /* of these calls, at random */
    uint32_t failed;   /* how many did */
};

struct control {
    uint32_t rules, seed;
    int64_t real_offset, real_stands, monotonic_stands; /* nanoseconds; 0 = the clock goes right */
    struct rule rule[8];
};

static struct control *control;

__attribute__((visibility("default"))) int attack_from(const char *path) {
    int file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (file < 0) return errno;
    void *found = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (found == MAP_FAILED) return errno;
    control = found;
    return 0;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("ATTACKED_FROM");
    if (path) attack_from(path);
}

/* Return the error with which this call is to fail, 0 if it is to work. path: NULL = that of the descriptor. */
static int fails(uint32_t call, const char *path, int descriptor) {
    static uint32_t calls;
    char found[4096];
    if (!control || !control->rules) return 0;
    for (uint32_t i = 0; i < control->rules && i < 8; i++) {
        struct rule *rule = &control->rule[i];
        if (!(rule->calls & call)) continue;
        if (!path) {
            char link[32];
            snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
            ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, found, sizeof found - 1);
            if (size < 0) return 0;
            found[size] = 0;
            path = found;
        }
        if (!strstr(path, rule->part)) continue;
        uint32_t bits = control->seed + __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) * 2654435761u;
        bits = (bits ^ bits >> 16) * 0x45d9f3bu;
        if ((bits ^ bits >> 16) % 1000000 >= rule->millionth) continue;
        __atomic_add_fetch(&rule->failed, 1, __ATOMIC_RELAXED);
        return rule->error;
    }
    return 0;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRAP(call, path, descriptor, failure, result, name, parameters, ...)       \
    result name parameters {                                                     \
        static __typeof__(&name) next;                                           \
        int error = fails(call, path, descriptor);                               \
        if (error) return errno = error, failure;                                \
        if (!next) next = NEXT(name);                                            \
        return next(__VA_ARGS__);                                                \
    }

#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }
#define WRAP_OPEN(name)                                                          \
    int name(const char *path, int flags, ...) {                                 \
        static __typeof__(&name) next;                                           \
        MODE                                                                     \
        int error = fails(OPEN, path, -1);                                       \
        if (error) return errno = error, -1;                                     \
        if (!next) next = NEXT(name);                                            \
        return next(path, flags, mode);                                          \
    }
#define WRAP_OPENAT(name)                                                        \
    int name(int directory, const char *path, int flags, ...) {                  \
        static __typeof__(&name) next;                                           \
        MODE                                                                     \
        int error = fails(OPEN, path, -1);                                       \
        if (error) return errno = error, -1;                                     \
        if (!next) next = NEXT(name);                                            \
        return next(directory, path, flags, mode);                               \
    }
WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)
WRAP(READ, NULL, file, -1, ssize_t, read, (int file, void *to, size_t size), file, to, size)
WRAP(READ, NULL, file, -1, ssize_t, pread64, (int file, void *to, size_t size, off64_t at), file, to, size, at)
WRAP(WRITE, NULL, file, -1, ssize_t, write, (int file, const void *from, size_t size), file, from, size)
WRAP(WRITE, NULL, file, -1, ssize_t, pwrite64, (int file, const void *from, size_t size, off64_t at), file, from, size, at)
WRAP(STAT, path, -1, -1, int, stat64, (const char *path, struct stat64 *to), path, to)
WRAP(STAT, path, -1, -1, int, lstat64, (const char *path, struct stat64 *to), path, to)
WRAP(STAT, NULL, file, -1, int, fstat64, (int file, struct stat64 *to), file, to)
WRAP(STAT, path, -1, -1, int, fstatat64, (int at, const char *path, struct stat64 *to, int flags), at, path, to, flags)
WRAP(STAT, path, -1, -1, int, statvfs64, (const char *path, struct statvfs64 *to), path, to)
WRAP(LIST, path, -1, NULL, DIR *, opendir, (const char *path), path)
WRAP(LIST, NULL, dirfd(list), NULL, struct dirent64 *, readdir64, (DIR *list), list)
WRAP(LINK, to, -1, -1, int, link, (const char *from, const char *to), from, to)
WRAP(LINK, to, -1, -1, int, linkat, (int a, const char *from, int b, const char *to, int flags), a, from, b, to, flags)
WRAP(RENAME, to, -1, -1, int, rename, (const char *from, const char *to), from, to)
WRAP(RENAME, to, -1, -1, int, renameat, (int a, const char *from, int b, const char *to), a, from, b, to)
WRAP(REMOVE, path, -1, -1, int, unlink, (const char *path), path)
WRAP(REMOVE, path, -1, -1, int, unlinkat, (int at, const char *path, int flags), at, path, flags)
WRAP(SYNC, NULL, file, -1, int, fsync, (int file), file)
WRAP(SYNC, NULL, file, -1, int, fdatasync, (int file), file)
WRAP(LOCK, NULL, file, -1, int, flock, (int file, int how), file, how)

static int64_t nanoseconds(const struct timespec *time) { return time->tv_sec * 1000000000LL + time->tv_nsec; }

static struct timespec timespec_of(int64_t time) { return (struct timespec){time / 1000000000LL, time % 1000000000LL}; }

static int right_time(clockid_t clock, struct timespec *time) {
    static __typeof__(&clock_gettime) next;
    if (!next) next = NEXT(clock_gettime);
    return next(clock, time);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = right_time(clock, time);
    if (failed || !control) return failed;
    if (clock == CLOCK_REALTIME && control->real_stands) *time = timespec_of(control->real_stands);
    if (clock == CLOCK_REALTIME) *time = timespec_of(nanoseconds(time) + control->real_offset);
    if (clock == CLOCK_MONOTONIC && control->monotonic_stands) *time = timespec_of(control->monotonic_stands);
    return 0;
}

/* A deadline of a process whose clock stands is as far from now as it is from the time at which the clock stands. */
static struct timespec right_deadline(clockid_t clock, const struct timespec *deadline) {
    struct timespec wrong, right;
    clock_gettime(clock, &wrong);
    right_time(clock, &right);
    return timespec_of(nanoseconds(deadline) + nanoseconds(&right) - nanoseconds(&wrong));
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left) {
    static __typeof__(&clock_nanosleep) next;
    if (!next) next = NEXT(clock_nanosleep);
    struct timespec right = flags & TIMER_ABSTIME ? right_deadline(clock, until) : *until;
    return next(clock, flags, &right, left);
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until) {
    static int (*next)(sem_t *, clockid_t, const struct timespec *);
    if (!next) next = (int (*)(sem_t *, clockid_t, const struct timespec *))dlsym(RTLD_NEXT, "sem_clockwait");
    struct timespec right = right_deadline(clock, until);
    return next(semaphore, clock, &right);
}
