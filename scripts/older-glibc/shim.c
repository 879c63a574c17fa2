/* What a program that is linked against stubs of an older glibc (stubs.py) lacks: code that is newer, or that used to be linked into
 * every program. 64-bit Linux only: there the kernel's struct stat is glibc's. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc < 2.33 had these in libc_nonshared.a. */
int stat64(const char *path, struct stat64 *out) { return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0); }
int lstat64(const char *path, struct stat64 *out) { return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW); }
int fstat64(int fd, struct stat64 *out) { return (int)syscall(SYS_fstat, fd, out); }
int fstatat64(int fd, const char *path, struct stat64 *out, int flags) { return (int)syscall(SYS_newfstatat, fd, path, out, flags); }
int stat(const char *path, struct stat *out) __attribute__((alias("stat64")));
int lstat(const char *path, struct stat *out) __attribute__((alias("lstat64")));
int fstat(int fd, struct stat *out) __attribute__((alias("fstat64")));
int fstatat(int fd, const char *path, struct stat *out, int flags) __attribute__((alias("fstatat64")));

/* glibc 2.30 */
pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }
