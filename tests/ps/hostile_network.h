// A network beyond the wire's contract: it delays, reorders and repeats requests, some of them much
// later. Every choice comes from a seed.
#pragma once

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/random.h"
#include "tests/ps/ps_cluster.h"

namespace ranklab::ps {

struct Hostility {
  std::uint64_t latest_ns = 1000;    // delay of a request or reply: uniform below
  std::uint64_t straggling_of = 10;  // one in so many takes 20 times as long
  std::uint64_t repeats_of = 4;      // one in so many requests comes twice
};

class HostileNetwork final : public TestNetwork {
 public:
  HostileNetwork(EventLoop& loop, Random random, const Hostility& hostility)
      : loop_(loop), random_(random), hostility_(hostility) {}

  transport::Requester& RequesterOf(Rank worker) override {
    auto& port = requesters_[worker];
    if (port == nullptr) {
      port = std::make_unique<Caller>(*this, Endpoint{Role::kWorker, worker});
    }
    return *port;
  }
  transport::Responder& ResponderOf(Rank server) override { return services_[server]; }

 private:
  struct Request {
    Endpoint from;
    Rank server = 0;
    transport::RequestHeader header;
    std::vector<std::byte> body;
  };
  struct Waiting {
    transport::Landing landing;
    transport::AnsweredFn done;
    bool answered = false;
  };

  class Caller final : public transport::Requester {
   public:
    Caller(HostileNetwork& network, Endpoint self) : network_(network), self_(self) {}
    void Call(Endpoint to, const transport::RequestHeader& header, transport::Payload body,
              transport::Landing reply, transport::AnsweredFn done) override {
      network_.Carry({self_, to.rank, header, {body.data, body.data + body.size}}, reply,
                     std::move(done));
    }

   private:
    HostileNetwork& network_;
    Endpoint self_;
  };

  class Service final : public transport::Responder {
   public:
    void Serve(transport::RequestFn handler, transport::BodyLandingFn) override {
      serve = std::move(handler);
    }
    transport::RequestFn serve;
  };

  void Later(Task task) {
    std::uint64_t delay = random_.Below(hostility_.latest_ns);
    delay *= random_.Below(hostility_.straggling_of) == 0 ? 20 : 1;
    loop_.RunAt(loop_.Now() + std::chrono::nanoseconds(delay), std::move(task));
  }

  void Carry(Request request, transport::Landing landing, transport::AnsweredFn done) {
    auto waiting = std::make_shared<Waiting>(Waiting{landing, std::move(done)});
    auto shared = std::make_shared<Request>(std::move(request));
    const int copies = random_.Below(hostility_.repeats_of) == 0 ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      Later([this, shared, waiting] { Hand(*shared, waiting); });
    }
  }

  // The first answer counts; a later one is dropped, as a messenger does with an id it has ended.
  void Hand(const Request& request, const std::shared_ptr<Waiting>& waiting) {
    std::vector<std::byte> body = request.body;  // valid only during the call
    services_[request.server].serve(
        request.from, request.header, {body.data(), static_cast<Bytes>(body.size())},
        [this, waiting](absl::StatusOr<transport::ReplyHeader> reply, transport::Payload payload,
                        DoneFn sent) {
          std::vector<std::byte> bytes(payload.data, payload.data + payload.size);
          sent(absl::OkStatus());
          Later([waiting, reply = std::move(reply), bytes = std::move(bytes)] {
            if (std::exchange(waiting->answered, true)) {
              return;
            }
            if (!bytes.empty()) {
              RANKLAB_CHECK(waiting->landing.size == static_cast<Bytes>(bytes.size()));
              std::memcpy(waiting->landing.data, bytes.data(), bytes.size());
            }
            waiting->done(reply);
          });
        });
    std::fill(body.begin(), body.end(), std::byte{0xff});
  }

  EventLoop& loop_;
  Random random_;
  Hostility hostility_;
  std::map<Rank, std::unique_ptr<Caller>> requesters_;
  std::map<Rank, Service> services_;
};

}  // namespace ranklab::ps
