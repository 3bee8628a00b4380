/* One whole file into memory that is kept from file to file, without the GIL.
 *
 * Never blocks on what is no regular file (a pipe, a device), and never reads more than it was told.
 */
#ifndef ITERATORS_IMAGE_FILE_H
#define ITERATORS_IMAGE_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>

#ifdef _WIN32
#include <io.h>
#include <wchar.h>
typedef wchar_t image_file_char;
typedef struct __stat64 image_file_status;
#define IMAGE_FILE_OPEN(path)             _wopen(path, _O_RDONLY | _O_BINARY | _O_NOINHERIT)
#define IMAGE_FILE_STATUS                 _fstat64
#define IMAGE_FILE_READ(file, into, size) _read(file, into, (unsigned)(size))
#define IMAGE_FILE_CLOSE                  _close
#define IMAGE_FILE_REGULAR(mode)          (((mode) & _S_IFMT) == _S_IFREG)
#else
#include <unistd.h>
typedef char image_file_char;
typedef struct stat image_file_status;
#define IMAGE_FILE_OPEN(path)    open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define IMAGE_FILE_STATUS        fstat
#define IMAGE_FILE_READ          read
#define IMAGE_FILE_CLOSE         close
#define IMAGE_FILE_REGULAR(mode) S_ISREG(mode)
#endif

/* What image_file_read returns besides 0 and the (positive) values of errno. */
enum {
    IMAGE_FILE_MEMORY = -1,
    IMAGE_FILE_NOT_REGULAR = -2,
    IMAGE_FILE_TOO_LARGE = -3,
    IMAGE_FILE_SHRANK = -4 /* it ended before its size said so */
};

/* Memory of at least `size` bytes; 0 if there is none. */
static int image_file_reserve(uint8_t** memory, size_t* capacity, size_t size) {
    uint8_t* larger;
    if (size <= *capacity) return 1;
    larger = (uint8_t*)realloc(*memory, size);
    if (larger == NULL) return 0;
    *memory = larger;
    *capacity = size;
    return 1;
}

static int image_file_contents(int file, int64_t largest, uint8_t** memory, size_t* capacity,
                               size_t* length) {
    image_file_status status;
    size_t size, done = 0;
    if (IMAGE_FILE_STATUS(file, &status) != 0) return errno ? errno : EIO;
    if (!IMAGE_FILE_REGULAR(status.st_mode)) return IMAGE_FILE_NOT_REGULAR;
    if (status.st_size > largest) return IMAGE_FILE_TOO_LARGE;
    size = (size_t)status.st_size;
    if (!image_file_reserve(memory, capacity, size)) return IMAGE_FILE_MEMORY;
    while (done < size) {
        const int64_t count = (int64_t)IMAGE_FILE_READ(file, *memory + done, size - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno ? errno : EIO;
        if (count == 0) return IMAGE_FILE_SHRANK;
        done += (size_t)count;
    }
    *length = size;
    return 0;
}

/* Read a file of at most `largest` bytes into *memory, which grows as needed.
 * Returns 0 and the size of the file in *length, or what went wrong. */
static int image_file_read(const image_file_char* path, int64_t largest, uint8_t** memory, size_t* capacity,
                           size_t* length) {
    int status, file;
    do {
        file = IMAGE_FILE_OPEN(path);
    } while (file < 0 && errno == EINTR);
    if (file < 0) return errno ? errno : EIO;
    status = image_file_contents(file, largest, memory, capacity, length);
    IMAGE_FILE_CLOSE(file);
    return status;
}

#endif
