#include "worker/wire_probe.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "core/status.h"
#include "core/status_latch.h"

namespace ranklab::worker {
namespace {

constexpr int kHops = 32;
// A lane that no collective uses.
constexpr std::uint32_t kLane = 0xffffffff;

// Lives until its last callback, on the loop.
class Probe : public std::enable_shared_from_this<Probe> {
 public:
  Probe(EventLoop& loop, transport::Messenger& messenger, const WireProbeOptions& options)
      : loop_(loop), messenger_(messenger), options_(options) {}

  void NextHop() {
    if (hop_ == kHops) {
      done_.Set(absl::OkStatus());
      return;
    }
    begins_ = loop_.Now();
    open_ = 2;
    const transport::Envelope envelope{
        .generation = options_.generation, .lane = kLane, .part = static_cast<std::uint32_t>(hop_)};
    const auto ended = [self = shared_from_this()](const absl::Status& status) {
      self->OneEnded(status);
    };
    const Rank next = (options_.rank + 1) % options_.ranks;
    const Rank previous = (options_.rank + options_.ranks - 1) % options_.ranks;
    const auto size = static_cast<Bytes>(out_.size());
    messenger_.Recv({Role::kWorker, previous}, envelope, {in_.data(), size}, ended);
    messenger_.Send({Role::kWorker, next}, envelope, {out_.data(), size}, ended);
  }

  absl::Status Wait() { return done_.Wait(options_.timeout, "the neighbours on the ring"); }

  Nanos Median() {
    std::nth_element(hops_.begin(), hops_.begin() + kHops / 2, hops_.end());
    return hops_[kHops / 2];
  }

 private:
  void OneEnded(const absl::Status& status) {
    if (!status.ok()) {
      done_.Set(status);
      return;
    }
    if (--open_ == 0) {
      hops_[static_cast<std::size_t>(hop_)] = loop_.Now() - begins_;
      ++hop_;
      NextHop();
    }
  }

  EventLoop& loop_;
  transport::Messenger& messenger_;
  const WireProbeOptions options_;
  StatusLatch done_;
  int hop_ = 0;
  int open_ = 0;
  Nanos begins_{};
  std::array<Nanos, kHops> hops_{};
  std::array<std::byte, 64> in_{};
  std::array<std::byte, 64> out_{};
};

}  // namespace

absl::StatusOr<Nanos> ProbeWireLatency(EventLoop& loop, transport::Messenger& messenger,
                                       const WireProbeOptions& options) {
  const auto probe = std::make_shared<Probe>(loop, messenger, options);
  loop.Post([probe] { probe->NextHop(); });
  RETURN_IF_ERROR(probe->Wait());
  return probe->Median();
}

}  // namespace ranklab::worker
