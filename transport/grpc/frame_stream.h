// One end of a TensorWire.Stream call as the loop sees it: frames out, frames in, an end. What is
// above it (rendezvous, wire) decides and is tested without gRPC; what is below it (stream_reactor)
// only carries.
#pragma once

#include <memory>
#include <string>

#include <absl/status/statusor.h>

#include "core/event_loop.h"
#include "transport/grpc/frame_codec.h"

namespace ranklab::transport {

struct OutgoingFrame {
  std::string prefix;  // everything in front of the payload: EncodeHello or EncodeFrame
  Payload payload;     // borrowed until `released` runs
  Task released;       // on the loop; null if there is no payload
};

struct IncomingFrame {
  Frame frame;
  std::shared_ptr<const void> bytes;  // what the frame's payload points into
};

class StreamEvents {
 public:
  virtual ~StreamEvents() = default;

  // Answers Read. Not Ok: the bytes were no frame.
  virtual void OnFrame(absl::StatusOr<IncomingFrame> frame) = 0;

  // Answers Write: the next frame may be given (this one's payload may still be borrowed).
  virtual void OnWritten() = 0;

  // The stream has ended, by whichever side; no event follows. Never Ok.
  virtual void OnEnded(const absl::Status& why) = 0;
};

// Calls and events on the loop; Close from any thread. Payloads that could not be sent stay
// borrowed until the stream has ended and everybody has let go of it.
class FrameStream {
 public:
  virtual ~FrameStream() = default;

  // Who hears of this stream from now on; null: nobody.
  virtual void Listen(StreamEvents* events) = 0;

  // Requires: no other read (write) is open. On a stream that has ended they do nothing, except
  // that `released` still runs.
  virtual void Read() = 0;
  virtual void Write(OutgoingFrame frame) = 0;

  // Ends the stream; the other side of an accepted stream sees `why`. Further calls do nothing.
  virtual void Close(const absl::Status& why) = 0;

  // Where the other side is, for messages: "10.0.0.7:7070" or gRPC's name of it.
  virtual std::string where() const = 0;
};

}  // namespace ranklab::transport
