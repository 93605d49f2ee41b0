// Writes tf.train.Example messages in canonical form, framed as TFRecords. Twin of shards/example_proto.py and
// shards/framing.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "column.h"
#include "shards/crc32c.h"

namespace bertdata {

inline size_t varint_size(uint64_t value) {
  size_t size = 1;
  for (; value >= 128; value >>= 7) ++size;
  return size;
}

// Writes a varint: seven bits per byte, lowest first, with the top bit set in all bytes except the last.
// 300 -> AC 02
inline uint8_t* put_varint(uint8_t* out, uint64_t value) {
  for (; value >= 128; value >>= 7) *out++ = static_cast<uint8_t>(value | 128);
  *out++ = static_cast<uint8_t>(value);
  return out;
}

// Writes a value below 2^21 as a varint, without branches. Always writes four bytes, of which one to three count, and
// returns the end of those.
inline uint8_t* put_small_varint(uint8_t* out, uint32_t value) {
  // `two` and `three` are 1 if the value needs a second or third byte. They also supply the continuation bits.
  const uint32_t two = value >= 1u << 7, three = value >= 1u << 14;
  const uint32_t bytes = (value & 127) | two << 7 | (value >> 7 & 127) << 8 | three << 15 | (value >> 14) << 16;
  std::memcpy(out, &bytes, 4);  // needs a little-endian host; setup.py builds for no other
  return out + 1 + two + three;
}

#ifdef BERTDATA_HAS_SSE42
// Byte shuffles that move together four varints, each in the lowest three bytes of a 32-bit lane. The index says which
// values need a second byte (bits 0-3) and which need a third (bits 4-7).
// values 5, 300, 7, 8: index 0b0010 -> bytes 0, 4 5, 8, 12
struct PackTable {
  alignas(16) uint8_t order[256][16];
  uint8_t size[256];
  PackTable() {
    for (int mask = 0; mask < 256; ++mask) {
      uint8_t count = 0;
      for (int lane = 0; lane < 4; ++lane) {
        const int length = 1 + (mask >> lane & 1) + (mask >> (lane + 4) & 1);
        for (int byte = 0; byte < length; ++byte) order[mask][count++] = static_cast<uint8_t>(4 * lane + byte);
      }
      size[mask] = count;
      for (uint8_t rest = count; rest < 16; ++rest) order[mask][rest] = 0x80;
    }
  }
};

// Writes four 16-bit values as varints at once. Always writes 16 bytes, of which 4 to 12 count, and returns the end of
// those.
__attribute__((target("sse4.2"))) inline uint8_t* put_four_varints(uint8_t* out, const uint16_t* values,
                                                                   const PackTable& table) {
  int64_t raw;
  std::memcpy(&raw, values, 8);
  const __m128i v = _mm_cvtepu16_epi32(_mm_cvtsi64_si128(raw));
  const __m128i two = _mm_cmpgt_epi32(v, _mm_set1_epi32(127)), three = _mm_cmpgt_epi32(v, _mm_set1_epi32(16383));
  // Spread each value's bits over three bytes, seven bits in each.
  const __m128i digits =
      _mm_or_si128(_mm_or_si128(_mm_and_si128(v, _mm_set1_epi32(0x7F)),
                                _mm_and_si128(_mm_slli_epi32(v, 1), _mm_set1_epi32(0x7F00))),
                   _mm_and_si128(_mm_slli_epi32(v, 2), _mm_set1_epi32(0x7F0000)));
  // Set the top bit of each byte that another byte follows.
  const __m128i flags = _mm_or_si128(_mm_and_si128(two, _mm_set1_epi32(0x80)), _mm_and_si128(three, _mm_set1_epi32(0x8000)));
  const int mask = _mm_movemask_ps(_mm_castsi128_ps(two)) | _mm_movemask_ps(_mm_castsi128_ps(three)) << 4;
  const __m128i order = _mm_load_si128(reinterpret_cast<const __m128i*>(table.order[mask]));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(_mm_or_si128(digits, flags), order));
  return out + table.size[mask];
}

__attribute__((target("sse4.2"))) inline uint8_t* put_varints(uint8_t* out, const uint16_t* values, size_t count) {
  static const PackTable table;
  size_t i = 0;
  for (; i + 4 <= count; i += 4) out = put_four_varints(out, values + i, table);
  for (; i < count; ++i) out = put_small_varint(out, values[i]);
  return out;
}
#endif

inline void put_fixed(uint8_t* out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(value >> 8 * i);
}

enum FeatureKind : uint8_t { kNoList = 0, kBytesList = 0x0A, kFloatList = 0x12, kInt64List = 0x1A };

// An entry of the feature map. data: the packed values of a list of numbers, or the whole message of a list of bytes.
// Nested messages start with their size, so all sizes are computed here, from the inside out.
struct Feature {
  Feature(std::string_view key, FeatureKind kind, const uint8_t* data, size_t size)
      : key(key), kind(kind), data(data), size(size) {
    list_size = size && is_packed() ? 1 + varint_size(size) + size : size;
    value_size = kind == kNoList ? 0 : 1 + varint_size(list_size) + list_size;
    entry_size = 1 + varint_size(key.size()) + key.size() + 1 + varint_size(value_size) + value_size;
    field_size = 1 + varint_size(entry_size) + entry_size;
  }

  bool is_packed() const { return kind == kFloatList || kind == kInt64List; }

  uint8_t* put(uint8_t* out) const {
    *out++ = 0x0A;
    out = put_varint(out, entry_size);
    *out++ = 0x0A;
    out = put_varint(out, key.size());
    std::memcpy(out, key.data(), key.size());
    out += key.size();
    *out++ = 0x12;
    out = put_varint(out, value_size);
    if (kind == kNoList) return out;
    *out++ = kind;
    out = put_varint(out, list_size);
    if (!size) return out;
    if (is_packed()) {
      *out++ = 0x0A;
      out = put_varint(out, size);
    }
    std::memcpy(out, data, size);
    return out + size;
  }

  std::string_view key;
  FeatureKind kind;
  const uint8_t* data;
  size_t size, list_size, value_size, entry_size, field_size;
};

constexpr size_t kFrameBytes = 16;  // length: 8 bytes, its checksum: 4, the payload's checksum: 4

// Writes frames. The payloads' checksums are filled in later, four at a time (crc32c_four).
class FrameWriter {
 public:
  explicit FrameWriter(Column<uint8_t>& out) : out_(out) {}
  ~FrameWriter() = default;

  // Writes a frame. Features must be sorted by key. has_group is false for a message without even an empty feature
  // map, which has no bytes at all.
  void add(const Feature* features, size_t count, bool has_group = true) {
    size_t inner = 0;
    for (size_t i = 0; i < count; ++i) inner += features[i].field_size;
    const size_t payload = has_group ? 1 + varint_size(inner) + inner : 0;
    uint8_t* out = out_.room(payload + kFrameBytes);
    put_fixed(out, payload, 8);
    put_fixed(out + 8, mask_crc(crc32c(out, 8)), 4);
    uint8_t* p = out + 12;
    if (has_group) {
      *p++ = 0x0A;
      p = put_varint(p, inner);
      for (size_t i = 0; i < count; ++i) p = features[i].put(p);
    }
    // `out` grows and may move, so remember the offset of the payload, not its address.
    pending_[pending_count_++] = {out_.size() + 12, payload};
    out_.added(payload + kFrameBytes);
    if (pending_count_ == 4) flush();
  }

  // Fills in the missing checksums. Call it after the last record.
  void flush() {
    uint32_t crc[4] = {~0u, ~0u, ~0u, ~0u};
    size_t done = 0;
#ifdef BERTDATA_HAS_SSE42
    if (pending_count_ == 4 && has_crc_instruction()) {
      const uint8_t* starts[4];
      // Four payloads in parallel as far as the shortest reaches, then the rest of each singly.
      size_t shortest = pending_[0].size;
      for (int i = 0; i < 4; ++i) {
        starts[i] = out_.data() + pending_[i].offset;
        shortest = std::min(shortest, pending_[i].size);
      }
      done = shortest & ~size_t{7};
      crc32c_four(crc, starts, done);
    }
#endif
    for (size_t i = 0; i < pending_count_; ++i) {
      uint8_t* payload = out_.data() + pending_[i].offset;
      const uint32_t whole = ~crc32c_update(crc[i], payload + done, pending_[i].size - done);
      put_fixed(payload + pending_[i].size, mask_crc(whole), 4);
    }
    pending_count_ = 0;
  }

 private:
  // A payload whose checksum is still missing.
  struct Pending {
    size_t offset, size;
  };
  Column<uint8_t>& out_;
  Pending pending_[4];
  size_t pending_count_ = 0;
};

}  // namespace bertdata
