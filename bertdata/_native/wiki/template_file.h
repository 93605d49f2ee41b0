// The templates and redirects of a dump in an immutable file that all workers map into memory.
//
// Format, little-endian: "BDWIKI2\n", the number of templates and of redirects (8 bytes each), the records, and the
// data.
// A record has five numbers: offset and size of the title, offset and size of the text, and the order of the
// definition in the dump. Offsets count from the start of the data. Template records come first. Within templates and
// within redirects, records are sorted by title, then by order.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace bertdata::wiki {

// A file that does not have this format.
struct BadTemplateFile : std::invalid_argument {
  explicit BadTemplateFile(const std::string& fault) : std::invalid_argument("template file: " + fault) {}
};

// View of a template file. The bytes must outlive it.
class TemplateFile {
 public:
  struct Definition {
    std::string_view title, text;
    uint64_t order;
  };

  enum Kind { kTemplate, kRedirect };

  TemplateFile() = default;
  explicit TemplateFile(std::string_view bytes) : bytes_(bytes) {
    if (bytes.substr(0, kMagic.size()) != kMagic) throw BadTemplateFile("does not begin with its mark");
    if (bytes.size() < kHead) throw BadTemplateFile("ends within its head");
    const uint64_t room = (bytes.size() - kHead) / kRecord;
    counts_[kTemplate] = number(kMagic.size());
    counts_[kRedirect] = number(kMagic.size() + 8);
    if (counts_[kTemplate] > room || counts_[kRedirect] > room - counts_[kTemplate])
      throw BadTemplateFile("has no room for its records");
    data_ = bytes.substr(kHead + kRecord * (counts_[kTemplate] + counts_[kRedirect]));
  }

  uint64_t count(Kind kind) const { return counts_[kind]; }

  // Returns template or redirect number i, where i < count(kind).
  Definition at(Kind kind, uint64_t i) const {
    const uint64_t record = kHead + kRecord * (i + (kind == kRedirect ? counts_[kTemplate] : 0));
    return {piece(record), piece(record + 16), number(record + 32)};
  }

  // Finds a title by bisection and returns the record's text. If several records have the title, the first one that the
  // bisection meets counts, because wikiextractor 3.1.0 uses that one.
  std::optional<std::string_view> bisect(Kind kind, std::string_view title) const {
    uint64_t low = 0, high = counts_[kind];  // the record, if any, is in [low, high)
    while (low < high) {
      const uint64_t middle = low + (high - 1 - low) / 2;
      const Definition met = at(kind, middle);
      const int order = met.title.compare(title);
      if (order == 0) return met.text;
      if (order < 0)
        low = middle + 1;
      else
        high = middle;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::string_view kMagic = "BDWIKI2\n";
  static constexpr uint64_t kHead = 24, kRecord = 40;

  uint64_t number(uint64_t offset) const {
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; ++i) value |= uint64_t{static_cast<uint8_t>(bytes_[offset + i])} << 8 * i;
    return value;
  }
  std::string_view piece(uint64_t offset) const {
    const uint64_t begin = number(offset), size = number(offset + 8);
    if (begin > data_.size() || size > data_.size() - begin) throw BadTemplateFile("a record points beyond its end");
    return data_.substr(begin, size);
  }

  std::string_view bytes_, data_;
  uint64_t counts_[2] = {0, 0};
};

}  // namespace bertdata::wiki
