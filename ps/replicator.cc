#include "ps/replicator.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/status.h"
#include "ps/protocol.h"

namespace ranklab::ps {

using transport::Payload;
using transport::ReplyHeader;
using transport::RequestHeader;

class Replicator::Core : public std::enable_shared_from_this<Replicator::Core> {
 public:
  Core(transport::Requester& requester, const ReplicatorOptions& options)
      : requester_(requester), options_(options) {
    RANKLAB_CHECK(options.message >= kFloat, "messages of %d bytes", options.message);
  }

  void Replicate(const ReplicatedUpdate& update, const compute::TensorView& gradients,
                 DoneFn done) {
    if (stopped_) {
      return done(absl::OkStatus());
    }
    queue_.push_back({update, gradients, std::move(done)});
    if (queue_.size() == 1) {
      SendParts();
    }
  }

  void Stop() {
    stopped_ = true;
    for (Pending& pending : std::exchange(queue_, {})) {
      pending.done(absl::OkStatus());
    }
  }

  Bytes bytes_sent() const { return bytes_sent_; }

 private:
  static constexpr Bytes kFloat = sizeof(float);

  struct Pending {
    ReplicatedUpdate update;
    compute::TensorView gradients;
    DoneFn done;
  };

  RequestHeader HeaderFor(KeyRange part) {
    return {.generation = options_.generation,
            .method = static_cast<std::uint32_t>(Method::kReplicate),
            .id = next_id_++,
            .step = queue_.front().update.sequence,
            .begin = part.begin,
            .end = part.end};
  }

  // All parts, and the update itself once they are there: on a network that keeps the order it
  // could follow at once, but what depends on it waits for the last byte anyway.
  void SendParts() {
    const Pending& next = queue_.front();
    const std::int64_t elements = next.gradients.element_count();
    const std::int64_t most = options_.message / kFloat;
    open_ = (elements + most - 1) / most;
    if (open_ == 0) {
      return SendUpdate();
    }
    for (std::int64_t begin = 0; begin < elements; begin += most) {
      const std::int64_t end = std::min(begin + most, elements);
      const Payload body{next.gradients.data + begin * kFloat, (end - begin) * kFloat};
      bytes_sent_ += body.size;
      Call({options_.range.begin + begin, options_.range.begin + end}, body, &Core::PartTaken);
    }
  }

  void PartTaken(const absl::Status& status) {
    if (!status.ok()) {
      return Fail(status);
    }
    if (--open_ == 0) {
      SendUpdate();
    }
  }

  void SendUpdate() {
    const ReplicatedUpdate& update = queue_.front().update;
    body_ = EncodeUpdate(update);
    RequestHeader header = HeaderFor({options_.range.begin, options_.range.begin});
    header.ends_step = true;
    header.weight = update.end.weight;
    header.overflow = update.end.overflow;
    Send(header,
         {reinterpret_cast<const std::byte*>(body_.data()),
          static_cast<Bytes>(body_.size() * sizeof(std::int64_t))},
         &Core::UpdateTaken);
  }

  void UpdateTaken(const absl::Status& status) {
    if (!status.ok()) {
      return Fail(status);
    }
    DoneFn done = std::move(queue_.front().done);
    queue_.pop_front();
    done(absl::OkStatus());
    if (!stopped_ && !queue_.empty()) {
      SendParts();
    }
  }

  // A heir that is gone is the coordinator's to judge.
  void Fail(const absl::Status& status) {
    if (absl::IsUnavailable(status)) {
      return;
    }
    stopped_ = true;
    for (Pending& pending : std::exchange(queue_, {})) {
      pending.done(Annotate(status, "by " + NameOf(options_.heir)));
    }
  }

  void Call(KeyRange part, Payload body, void (Core::*taken)(const absl::Status&)) {
    Send(HeaderFor(part), body, taken);
  }

  void Send(const RequestHeader& header, Payload body, void (Core::*taken)(const absl::Status&)) {
    requester_.Call(options_.heir, header, body, {},
                    [weak = weak_from_this(), sequence = header.step,
                     taken](const absl::StatusOr<ReplyHeader>& reply) {
                      const std::shared_ptr<Core> self = weak.lock();
                      if (self != nullptr && !self->stopped_ && !self->queue_.empty() &&
                          self->queue_.front().update.sequence == sequence) {
                        (*self.*taken)(reply.status());
                      }
                    });
  }

  transport::Requester& requester_;
  const ReplicatorOptions options_;
  std::deque<Pending> queue_;       // the first one is being sent
  std::vector<std::int64_t> body_;  // of its update
  std::int64_t open_ = 0;           // parts without an answer
  std::uint64_t next_id_ = 1;
  Bytes bytes_sent_ = 0;
  bool stopped_ = false;
};

Replicator::Replicator(transport::Requester& requester, const ReplicatorOptions& options)
    : core_(std::make_shared<Core>(requester, options)) {}

Replicator::~Replicator() = default;

void Replicator::Replicate(const ReplicatedUpdate& update, const compute::TensorView& gradients,
                           DoneFn done) {
  core_->Replicate(update, gradients, std::move(done));
}

void Replicator::Stop() { core_->Stop(); }

Bytes Replicator::bytes_sent() const { return core_->bytes_sent(); }

}  // namespace ranklab::ps
