/* malloc with a guard after each block: 256 bytes that nobody may write, looked at by free() and by guard_damaged().

   LD_PRELOAD=guard.so; Linux with glibc. A block is laid out as: padding, header, the caller's bytes, guard. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GUARD = 256, PATTERN = 0xA5 };
static const uint64_t MARK = 0x706c797a65726f21; /* a header in use */

typedef struct Header {
  struct Header *previous, *next;
  void *base; /* what the C library gave */
  size_t size;
  uint64_t mark;
  uint64_t reported;
} Header;

_Static_assert(sizeof(Header) % 16 == 0, "the caller's bytes would not be aligned");

extern void *__libc_malloc(size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static Header blocks = {&blocks, &blocks, 0, 0, 0, 0};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int damaged;

static void look_at(Header *header) {
  const unsigned char *guard = (unsigned char *)(header + 1) + header->size;
  int intact = header->mark == MARK, first = 0;
  while (first < GUARD && guard[first] == PATTERN) first++;
  if ((intact && first == GUARD) || header->reported) return;
  header->reported = 1;
  damaged++;
  char text[160];
  int length = snprintf(text, sizeof text, "guard: block of %zu bytes: %s %d\n", header->size,
                        intact ? "written past its end, at byte" : "header overwritten; guard intact up to byte", first);
  if (write(2, text, length) < 0) return;
}

/* Return how many blocks have been found damaged so far, after a look at every block in use. */
int guard_damaged(void) {
  pthread_mutex_lock(&lock);
  for (Header *each = blocks.next; each != &blocks; each = each->next) {
    look_at(each);
    if (each->mark != MARK) break; /* its links are not to be trusted */
  }
  pthread_mutex_unlock(&lock);
  return damaged;
}

__attribute__((destructor)) static void look_at_the_end(void) {
  if (guard_damaged()) _exit(99);
}

void *memalign(size_t alignment, size_t size) {
  if (alignment < 16) alignment = 16;
  size_t before = (sizeof(Header) + alignment - 1) / alignment * alignment;
  size_t whole;
  char *base = NULL;
  if (!__builtin_add_overflow(before + GUARD, size, &whole))
    base = alignment == 16 ? __libc_malloc(whole) : __libc_memalign(alignment, whole);
  if (!base) {
    errno = ENOMEM;
    return NULL;
  }
  Header *header = (Header *)(base + before) - 1;
  *header = (Header){&blocks, NULL, base, size, MARK, 0};
  memset(base + before + size, PATTERN, GUARD);
  pthread_mutex_lock(&lock);
  header->next = blocks.next;
  blocks.next->previous = header;
  blocks.next = header;
  pthread_mutex_unlock(&lock);
  return header + 1;
}

void free(void *block) {
  if (!block) return;
  int kept = errno;
  Header *header = (Header *)block - 1;
  pthread_mutex_lock(&lock);
  look_at(header);
  if (header->mark == MARK) {
    header->previous->next = header->next;
    header->next->previous = header->previous;
    header->mark = 0;
    pthread_mutex_unlock(&lock);
    __libc_free(header->base);
  } else {
    pthread_mutex_unlock(&lock); /* a damaged block is leaked: the process goes on, and the test is named */
  }
  errno = kept;
}

void *malloc(size_t size) { return memalign(16, size); }

void *calloc(size_t count, size_t size) {
  size_t whole;
  if (__builtin_mul_overflow(count, size, &whole)) {
    errno = ENOMEM;
    return NULL;
  }
  void *block = malloc(whole);
  return block ? memset(block, 0, whole) : NULL;
}

void *realloc(void *block, size_t size) {
  if (!block) return malloc(size);
  size_t old = ((Header *)block - 1)->size;
  void *moved = malloc(size);
  if (!moved) return NULL;
  memcpy(moved, block, old < size ? old : size);
  free(block);
  return moved;
}

void *reallocarray(void *block, size_t count, size_t size) {
  size_t whole;
  if (!__builtin_mul_overflow(count, size, &whole)) return realloc(block, whole);
  errno = ENOMEM;
  return NULL;
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

void *valloc(size_t size) { return memalign(4096, size); }

int posix_memalign(void **block, size_t alignment, size_t size) {
  *block = memalign(alignment, size);
  return *block ? 0 : ENOMEM;
}

size_t malloc_usable_size(void *block) { return block ? ((Header *)block - 1)->size : 0; }
