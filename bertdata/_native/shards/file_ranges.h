// Reads many ranges of open files one behind the other. Twin of shards/file_view.py.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace bertdata {

// Reads `size` bytes of a file from an offset on. Returns false if the file ends earlier or cannot be read.
inline bool read_range(int file, int64_t start, size_t size, uint8_t* out) {
  while (size) {
    const ssize_t count = pread(file, out, size, static_cast<off_t>(start));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    out += count, start += count, size -= static_cast<size_t>(count);
  }
  return true;
}

}  // namespace bertdata
