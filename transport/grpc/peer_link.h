// One peer of a GrpcWire: messages to frames on the way out, frames to messages on the way in.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include <absl/functional/any_invocable.h>

#include "core/event_loop.h"
#include "transport/grpc/frame_stream.h"
#include "transport/wire.h"

namespace ranklab::transport {

// All calls and events on the loop. Held by shared_ptr: what it calls may drop its owner.
class PeerLink final : public StreamEvents, public std::enable_shared_from_this<PeerLink> {
 public:
  // Runs at most once, when the stream is gone or carried what is no message; not after End.
  using LostFn = absl::AnyInvocable<void(const absl::Status& why)>;

  PeerLink(EventLoop& loop, const WirePeer& peer, LostFn lost);
  ~PeerLink() override;

  // Frames are read once both the sink and the stream are there.
  void Deliver(WireSink& sink);
  void Join(std::shared_ptr<FrameStream> stream);

  void Send(const MessageHeader& header, Payload body, DoneFn sent);

  // Ends pending and later sends with `reason`, closes the stream, delivers nothing more.
  void End(const absl::Status& reason);

  const WireCounters& counters() const { return counters_; }

  void OnFrame(absl::StatusOr<IncomingFrame> frame) override;
  void OnWritten() override;
  void OnEnded(const absl::Status& why) override;

 private:
  // A message on its way out. gRPC's threads let go of its frames one by one, so it outlives the
  // link if need be.
  struct Outgoing {
    MessageHeader header;
    Payload body;
    DoneFn sent;
    bool begun = false;     // its header is out
    Bytes framed = 0;       // bytes of the body given to the stream
    int borrowed = 0;       // frames whose bytes gRPC still holds
    bool finished = false;  // nothing more of it will be given to the stream
    absl::Status status;
  };
  struct Incoming {
    MessageHeader header;
    WireSink::Acceptance acceptance;
    Bytes received = 0;
  };

  static void SettleIfDone(Outgoing& message);

  void BeginReading();
  void WriteNext();
  absl::Status Take(const Frame& frame);
  absl::Status BeginMessage(const MessageHeader& header);
  void Land(const Frame& frame);
  void Lose(const absl::Status& why);
  void Stop(const absl::Status& reason);

  EventLoop& loop_;
  const WirePeer peer_;
  LostFn lost_;
  WireSink* sink_ = nullptr;
  std::shared_ptr<FrameStream> stream_;
  absl::Status ended_;  // not Ok: what later sends end with
  WireCounters counters_;

  std::deque<std::shared_ptr<Outgoing>> outbox_;  // the first may be partly written
  std::shared_ptr<Outgoing> writing_;             // whose frame the stream is writing
  bool write_posted_ = false;                     // a task of the loop will write the next
  std::optional<Incoming> incoming_;              // whose body is not complete
};

}  // namespace ranklab::transport
