// Reads TFRecords: frames, tf.train.Example messages, canonical form. Twin of shards/framing.py and
// shards/example_proto.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "column.h"
#include "shards/crc32c.h"
#include "shards/tfrecord.h"
#include "unicode/unicode.h"

namespace bertdata {

// A record that cannot be read, with its index.
struct RecordError : std::runtime_error {
  RecordError(size_t record, const std::string& what) : std::runtime_error(what), record(record) {}
  size_t record;  // index counted from the start of the block
};

// A record that is not a valid frame or not a tf.train.Example.
struct ParseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A range of bytes, consumed from the front.
struct Bytes {
  const uint8_t *p, *end;
  size_t size() const { return static_cast<size_t>(end - p); }
  std::string_view text() const { return {reinterpret_cast<const char*>(p), size()}; }
};

inline uint64_t get_fixed(const uint8_t* p, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(p[i]) << 8 * i;
  return value;
}

constexpr uint64_t kLongestRecord = uint64_t{1} << 31;

// Returns the length of the frame that begins at `p`, where at least 12 bytes must follow. Throws ParseError if its
// checksum is wrong.
inline uint64_t get_frame_length(const uint8_t* p) {
  const uint64_t length = get_fixed(p, 8);
  // Check the length first: a damaged length would make the reader wait for gigabytes of data.
  if (get_fixed(p + 8, 4) != mask_crc(crc32c(p, 8)))
    throw ParseError("the checksum of its length does not fit: damaged, or not a TFRecord file");
  if (length > kLongestRecord) throw ParseError("its length is " + std::to_string(length) + " bytes");
  return length;
}

// Takes a frame off the block and sets `payload` to its data. Returns false if the block ends within the frame. Throws
// ParseError if a checksum is wrong.
inline bool next_frame(Bytes& block, Bytes& payload) {
  if (block.size() < 12) return false;
  const uint64_t length = get_frame_length(block.p);
  if (block.size() < length + kFrameBytes) return false;
  payload = {block.p + 12, block.p + 12 + length};
  if (get_fixed(payload.end, 4) != mask_crc(crc32c(payload.p, length)))
    throw ParseError("the checksum of its data does not fit: damaged");
  block.p += length + kFrameBytes;
  return true;
}

// Appends the offset after each frame of a block, for at most `limit` frames. The payloads are not looked at, and the
// last frame may end beyond the block. Throws RecordError with the record's index if a length is damaged.
inline void find_frame_ends(Bytes block, size_t limit, Column<uint32_t>& out) {
  const size_t size = block.size();
  // A frame has at most 2^31 + 16 bytes, so offsets fit as long as the block is not longer than that.
  for (size_t place = 0; out.size() < limit && place + 12 <= size;) {
    try {
      place += get_frame_length(block.p + place) + kFrameBytes;
    } catch (const ParseError& error) {
      throw RecordError(out.size(), error.what());
    }
    out.push(static_cast<uint32_t>(place));
  }
}

inline uint64_t get_varint(Bytes& in) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && in.p < in.end; shift += 7) {
    const uint8_t byte = *in.p++;
    value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return value;
  }
  throw ParseError("not a tf.train.Example: broken number");
}

// Appends the numbers of a packed list. Most numbers take one byte (masks, segments, short positions) or two (ids), so
// there is a fast path for each.
inline void append_varints(Bytes in, Column<int64_t>& out) {
  constexpr uint64_t kLast = 0x8080808080808080;  // a top bit says that the varint has further bytes
  int64_t* const room = out.room(in.size());  // every number has at least one byte
  int64_t* next = room;
  while (in.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, in.p, 8);
    // Eight numbers of one byte each.
    if ((word & kLast) == 0) {
      for (size_t i = 0; i < 8; ++i) next[i] = in.p[i];
      next += 8, in.p += 8;
    } else if (in.p[0] >= 128 && in.p[1] < 128) {
      *next++ = (in.p[0] & 127) | in.p[1] << 7;
      in.p += 2;
    } else {
      *next++ = static_cast<int64_t>(get_varint(in));
    }
  }
  while (in.size()) *next++ = static_cast<int64_t>(get_varint(in));
  out.added(static_cast<size_t>(next - room));
}

inline Bytes get_bytes(Bytes& in) {
  const uint64_t size = get_varint(in);
  if (size > in.size()) throw ParseError("not a tf.train.Example: a field is longer than its message");
  const Bytes out{in.p, in.p + size};
  in.p += size;
  return out;
}

inline std::string_view get_key(Bytes& in) {
  const Bytes key = get_bytes(in);
  for (const uint8_t* p = key.p; p < key.end;)
    if (decode_utf8(p, key.end) == kCodePoints) throw ParseError("not a tf.train.Example: a key is not UTF-8");
  return key.text();
}

[[noreturn]] inline void throw_unknown_field() {
  throw ParseError("not a tf.train.Example: unknown field");
}

// A feature of an example. The containers keep their memory from record to record.
struct ParsedFeature {
  std::string_view key;
  uint8_t kind = 0;  // a FeatureKind, or 0 if the message has no list
  Column<int64_t> ints;
  std::vector<uint8_t> floats;  // four bytes each, as stored in the file
  std::vector<std::string_view> strings;

  void clear() {
    key = {};
    kind = 0;
    ints.truncate(0);
    floats.clear();
    strings.clear();
  }
  size_t float_count() const { return floats.size() / 4; }
};

// A parsed tf.train.Example. Knows only the fields of that message and refuses others.
class ParsedExample {
 public:
  // Parses a payload. Keys and strings are views into the payload, which must outlive them. Features are sorted by
  // key.
  void parse(Bytes payload) {
    count_ = 0;
    while (payload.size()) {
      if (get_varint(payload) != 0x0A) throw_unknown_field();
      Bytes features = get_bytes(payload);
      while (features.size()) {
        if (get_varint(features) != 0x0A) throw_unknown_field();
        parse_entry(get_bytes(features));
      }
    }
    sort_features();
  }

  size_t size() const { return order_.size(); }
  const ParsedFeature& operator[](size_t i) const { return pool_[order_[i]]; }

  const ParsedFeature* find(std::string_view key) const {
    for (size_t i : order_)
      if (pool_[i].key == key) return &pool_[i];
    return nullptr;
  }

 private:
  void parse_entry(Bytes entry) {
    ParsedFeature& feature = next();
    while (entry.size()) {
      const uint64_t tag = get_varint(entry);
      if (tag == 0x0A)
        feature.key = get_key(entry);
      else if (tag == 0x12)
        parse_feature(get_bytes(entry), feature);
      else
        throw_unknown_field();
    }
  }

  // Sorts the features by key. If a key occurs several times, the last feature counts, as protobuf defines for maps:
  // among equal keys it sorts first, and only the first is kept.
  void sort_features() {
    order_.clear();
    for (size_t i = 0; i < count_; ++i) order_.push_back(i);
    const auto key = [&](size_t i) { return pool_[i].key; };
    std::sort(order_.begin(), order_.end(),
              [&](size_t a, size_t b) { return key(a) != key(b) ? key(a) < key(b) : a > b; });
    const auto equal = [&](size_t a, size_t b) { return key(a) == key(b); };
    order_.erase(std::unique(order_.begin(), order_.end(), equal), order_.end());
  }

  void parse_feature(Bytes message, ParsedFeature& feature) {
    while (message.size()) {
      const uint64_t kind = get_varint(message);
      if (kind != kBytesList && kind != kFloatList && kind != kInt64List) throw_unknown_field();
      // A second list of another type replaces the first (a protobuf oneof).
      if (kind != feature.kind) {
        const std::string_view key = feature.key;
        feature.clear();
        feature.key = key;
        feature.kind = static_cast<uint8_t>(kind);
      }
      parse_list(get_bytes(message), feature);
    }
  }

  static void parse_list(Bytes list, ParsedFeature& feature) {
    while (list.size()) {
      const uint64_t tag = get_varint(list);
      if (tag == 0x0A && feature.kind == kBytesList) {
        feature.strings.push_back(get_bytes(list).text());
      } else if (tag == 0x0A) {
        Bytes packed = get_bytes(list);
        if (feature.kind == kFloatList) {
          if (packed.size() % 4) throw ParseError("not a tf.train.Example: a list of floats is cut");
          feature.floats.insert(feature.floats.end(), packed.p, packed.end);
        } else {
          append_varints(packed, feature.ints);
        }
      } else if (tag == 0x08 && feature.kind == kInt64List) {
        feature.ints.push(static_cast<int64_t>(get_varint(list)));
      } else if (tag == 0x0D && feature.kind == kFloatList && list.size() >= 4) {
        feature.floats.insert(feature.floats.end(), list.p, list.p + 4);
        list.p += 4;
      } else {
        throw_unknown_field();
      }
    }
  }

  ParsedFeature& next() {
    if (count_ == pool_.size()) pool_.emplace_back();
    pool_[count_].clear();
    return pool_[count_++];
  }

  std::vector<ParsedFeature> pool_;
  std::vector<size_t> order_;
  size_t count_ = 0;
};

// Writes every complete frame of a block again in canonical form.
class Canonicalizer {
 public:
  // Returns the number of frames written, and moves `block` past them.
  size_t run(Bytes& block, Column<uint8_t>& out) {
    FrameWriter frames(out);
    size_t record = 0;
    Bytes payload;
    try {
      for (; next_frame(block, payload); ++record) {
        example_.parse(payload);
        add(frames, payload.size() > 0);
      }
    } catch (const ParseError& error) {
      throw RecordError(record, error.what());
    }
    frames.flush();
    return record;
  }

 private:
  void add(FrameWriter& frames, bool has_group) {
    lists_.resize(std::max(lists_.size(), example_.size()));
    features_.clear();
    for (size_t i = 0; i < example_.size(); ++i) {
      const ParsedFeature& feature = example_[i];
      std::vector<uint8_t>& list = lists_[i];
      list.clear();
      if (feature.kind == kFloatList)
        list = feature.floats;
      else if (feature.kind == kInt64List)
        for (size_t k = 0; k < feature.ints.size(); ++k) append_varint(static_cast<uint64_t>(feature.ints[k]), list);
      else
        for (std::string_view text : feature.strings) {
          list.push_back(0x0A);
          append_varint(text.size(), list);
          list.insert(list.end(), text.begin(), text.end());
        }
      features_.push_back({feature.key, static_cast<FeatureKind>(feature.kind), list.data(), list.size()});
    }
    frames.add(features_.data(), features_.size(), has_group);
  }

  static void append_varint(uint64_t value, std::vector<uint8_t>& out) {
    uint8_t bytes[10];
    out.insert(out.end(), bytes, put_varint(bytes, value));
  }

  ParsedExample example_;
  std::vector<std::vector<uint8_t>> lists_;
  std::vector<Feature> features_;
};

}  // namespace bertdata
