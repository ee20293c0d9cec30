// What waits to be written on one stream: gRPC allows one write in flight.
#pragma once

#include <deque>
#include <utility>

#include "core/check.h"
#include "core/units.h"

namespace ranklab::coordinator {

template <typename Message>
class WriteQueue {
 public:
  void Push(Message message) {
    waiting_.push_back(std::move(message));
    bytes_ += SizeOf(waiting_.back());
  }

  // The message to write now, valid until Written; null while one is in flight or none waits.
  const Message* Next() {
    if (in_flight_ || waiting_.empty()) {
      return nullptr;
    }
    in_flight_ = true;
    return &waiting_.front();
  }

  void Written() {
    RANKLAB_CHECK(in_flight_, "nothing is being written");
    in_flight_ = false;
    bytes_ -= SizeOf(waiting_.front());
    waiting_.pop_front();
  }

  // Drops what is not in flight: the stream is broken.
  void Clear() {
    waiting_.resize(in_flight_ ? 1 : 0);
    bytes_ = in_flight_ ? SizeOf(waiting_.front()) : 0;
  }

  bool empty() const { return waiting_.empty(); }
  Bytes bytes() const { return bytes_; }  // encoded, of what is not written yet

 private:
  static Bytes SizeOf(const Message& message) { return static_cast<Bytes>(message.ByteSizeLong()); }

  std::deque<Message> waiting_;  // the front one may be in flight
  bool in_flight_ = false;
  Bytes bytes_ = 0;
};

}  // namespace ranklab::coordinator
