// Counts the revisions of a dump's pages. Twin: wiki/dump/revisions.py.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace bertdata::wiki {

// Returns the number of <revision> tags. Text in a dump is escaped, so every "<" begins a tag, and searching for "<"
// is fast.
inline size_t count_revisions(std::string_view data) {
  constexpr std::string_view kTag = "<revision>";
  size_t found = 0;
  const char* at = data.data();
  const char* const end = at + data.size();
  while ((at = static_cast<const char*>(std::memchr(at, '<', static_cast<size_t>(end - at)))) != nullptr) {
    if (std::string_view(at, static_cast<size_t>(end - at)).substr(0, kTag.size()) == kTag) ++found;
    if (++at == end) break;
  }
  return found;
}

}  // namespace bertdata::wiki
