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
#include "core/status.h"
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

  transport::Requester& RequesterOf(Endpoint endpoint) override {
    auto& port = requesters_[endpoint];
    if (port == nullptr) {
      port = std::make_unique<Caller>(*this, endpoint);
    }
    return *port;
  }
  transport::Responder& ResponderOf(Rank server) override { return services_[server]; }

  // From now on nothing comes from the server or reaches it, whatever is on its way; calls to it
  // end with Unavailable after a while.
  void Kill(Rank server) {
    killed_ = server;
    for (const Open& open : std::exchange(open_, {})) {
      if (open.server == server) {
        Later([this, open] { GiveUp(open.from, open.waiting); });
      }
    }
  }

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

  struct Open {
    Rank server = 0;
    Endpoint from;
    std::shared_ptr<Waiting> waiting;
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

  bool Dead(Endpoint endpoint) const { return endpoint == Endpoint{Role::kServer, killed_}; }

  void Carry(Request request, transport::Landing landing, transport::AnsweredFn done) {
    if (Dead(request.from)) {
      return;
    }
    auto waiting = std::make_shared<Waiting>(Waiting{landing, std::move(done)});
    open_.push_back({request.server, request.from, waiting});
    auto shared = std::make_shared<Request>(std::move(request));
    const int copies = random_.Below(hostility_.repeats_of) == 0 ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      Later([this, shared, waiting] { Hand(*shared, waiting); });
    }
  }

  // The first answer counts; a later one is dropped, as a messenger does with an id it has ended.
  void Hand(const Request& request, const std::shared_ptr<Waiting>& waiting) {
    if (request.server == killed_ || Dead(request.from)) {
      return GiveUp(request.from, waiting);
    }
    std::vector<std::byte> body = request.body;  // valid only during the call
    services_[request.server].serve(
        request.from, request.header, {body.data(), static_cast<Bytes>(body.size())},
        [this, waiting, from = request.from, server = request.server](
            absl::StatusOr<transport::ReplyHeader> reply, transport::Payload payload, DoneFn sent) {
          std::vector<std::byte> bytes(payload.data, payload.data + payload.size);
          sent(absl::OkStatus());
          Later([this, from, server, waiting, reply = std::move(reply), bytes = std::move(bytes)] {
            if (server == killed_ || Dead(from)) {
              return GiveUp(from, waiting);
            }
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

  void GiveUp(Endpoint from, const std::shared_ptr<Waiting>& waiting) {
    if (!Dead(from) && !std::exchange(waiting->answered, true)) {
      waiting->done(Unavailable("server %d is lost", killed_));
    }
  }

  EventLoop& loop_;
  Random random_;
  Hostility hostility_;
  Rank killed_ = -1;
  std::vector<Open> open_;  // calls, some of them answered since
  std::map<Endpoint, std::unique_ptr<Caller>> requesters_;
  std::map<Rank, Service> services_;
};

}  // namespace ranklab::ps
