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
    const auto size = static_cast<Bytes>(message.ByteSizeLong());
    waiting_.push_back({std::move(message), size});
    bytes_ += size;
  }

  // The message to write now, valid until Written; null while one is in flight or none waits.
  const Message* Next() {
    if (in_flight_ || waiting_.empty()) {
      return nullptr;
    }
    in_flight_ = true;
    return &waiting_.front().message;
  }

  void Written() {
    RANKLAB_CHECK(in_flight_, "nothing is being written");
    in_flight_ = false;
    bytes_ -= waiting_.front().size;
    waiting_.pop_front();
  }

  // Drops what is not in flight: the stream is broken.
  void Clear() {
    waiting_.resize(in_flight_ ? 1 : 0);
    bytes_ = in_flight_ ? waiting_.front().size : 0;
  }

  bool empty() const { return waiting_.empty(); }
  Bytes bytes() const { return bytes_; }  // encoded, of what is not written yet

 private:
  struct Waiting {
    Message message;
    Bytes size = 0;  // encoded
  };

  std::deque<Waiting> waiting_;  // the front one may be in flight
  bool in_flight_ = false;
  Bytes bytes_ = 0;
};

}  // namespace ranklab::coordinator
