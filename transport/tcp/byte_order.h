// Fields of fixed size, one after another, little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include "core/check.h"

namespace ranklab::transport {

static_assert(std::endian::native == std::endian::little,
              "the wires' byte order is this machine's");

class FieldWriter {
 public:
  explicit FieldWriter(std::span<std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  void Put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    RANKLAB_CHECK(at_ + sizeof(T) <= bytes_.size());
    std::memcpy(bytes_.data() + at_, &value, sizeof(T));
    at_ += sizeof(T);
  }
  std::span<const std::byte> written() const { return bytes_.first(at_); }

 private:
  std::span<std::byte> bytes_;
  std::size_t at_ = 0;
};

class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T Take() {
    static_assert(std::is_arithmetic_v<T>);
    RANKLAB_CHECK(at_ + sizeof(T) <= bytes_.size());
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::span<const std::byte> taken() const { return bytes_.first(at_); }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace ranklab::transport
