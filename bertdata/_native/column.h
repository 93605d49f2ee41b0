// Growing array of plain items that does not initialise its memory. Kernels hand each other their results in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace bertdata {

template <class T>
class Column {
 public:
  Column() = default;
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;
  Column(Column&& other) noexcept { swap(other); }
  Column& operator=(Column&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Column() { std::free(data_); }

  // Returns space for `count` more items at the end. Call added() with the number of items that were written.
  T* room(size_t count) {
    if (size_ + count > capacity_) grow(size_ + count);
    return data_ + size_;
  }
  void added(size_t count) { size_ += count; }
  void push(T item) { *room(1) = item, ++size_; }
  void truncate(size_t size) { size_ = size; }
  // Frees the memory that is reserved beyond the last item.
  void fit() {
    if (size_ < capacity_ && size_) reallocate(size_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& operator[](size_t i) { return data_[i]; }

 private:
  void grow(size_t needed) { reallocate(needed > 2 * capacity_ ? needed : 2 * capacity_); }
  void reallocate(size_t capacity) {
    T* moved = static_cast<T*>(std::realloc(data_, capacity * sizeof(T)));
    if (!moved) throw std::bad_alloc();
    data_ = moved;
    capacity_ = capacity;
  }
  void swap(Column& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  T* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace bertdata
