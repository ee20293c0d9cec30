// Labs as values and a pool of members that exist only as ids: what the conductor's tests conduct.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "coordinator/conductor.h"
#include "core/overloaded.h"
#include "core/status.h"

namespace ranklab::coordinator {

struct CellOnPaper {
  int workers = 1;
  bool with_servers = false;
  bool shaped = false;  // ethernet, modelled compute, time_scale auto
  bool baseline = false;
};

inline experiment::Cell ToCell(const CellOnPaper& paper, int index) {
  experiment::Cell cell{.index = index, .baseline = paper.baseline, .spec = {}, .settings = {}};
  cell.spec.model = experiment::MlpSpec{.layers = {64, 32, 10}};
  cell.spec.train.steps = 10;
  cell.spec.train.batch_per_worker = 32;
  cell.spec.cluster = {.workers = paper.workers, .servers = 2};
  if (paper.with_servers) {
    cell.spec.exchange.kind = experiment::ParameterServerSpec{};
  }
  if (paper.shaped) {
    cell.spec.fabric.preset = "ethernet_10g";
    cell.spec.compute.model = "a100";
  }
  return cell;
}

inline experiment::Lab LabOf(const std::string& part, const std::vector<CellOnPaper>& cells,
                             int repeats = 1) {
  experiment::Lab lab{.name = "compare",
                      .file = "labs/compare.yaml",
                      .question = "",
                      .text = "name: compare",
                      .hash = "0123",
                      .overrides = {},
                      .parts = {}};
  experiment::Part& only = lab.parts.emplace_back();
  only.name = part;
  only.repeats = repeats;
  for (const CellOnPaper& paper : cells) {
    only.cells.push_back(ToCell(paper, static_cast<int>(only.cells.size())));
  }
  return lab;
}

// The conductor, the pool and the time; members answer only when a test lets them.
class ConductorBench {
 public:
  ConductorBench() : membership({.build = "b", .suspect_after = std::chrono::seconds(5)}) {}

  MemberId AddMember(Role role) {
    const MemberId id = *membership.Join({.role = role,
                                          .contact = {.host = "h", .grpc_port = 1},
                                          .wanted_rank = {},
                                          .build = "b",
                                          .launched = launched},
                                         now);
    if (conductor) {
      Carry(conductor->Joined(*membership.Find(id), now));
    }
    return id;
  }
  void AddWorkers(int count) {
    for (int i = 0; i < count; ++i) {
      workers.push_back(AddMember(Role::kWorker));
    }
  }
  void AddServers(int count) {
    for (int i = 0; i < count; ++i) {
      servers.push_back(AddMember(Role::kServer));
    }
  }

  void Conduct(experiment::Lab lab, ConductorOptions options = {}) {
    options.join_timeout = std::chrono::seconds(10);
    conductor = std::make_unique<Conductor>(std::move(lab), options, membership, forecast, now);
    Carry(conductor->Tick(now));
  }

  // Time passes; who is not `silent` beats.
  void Pass(Nanos duration, const std::vector<MemberId>& silent = {}) {
    const Nanos until = now + duration;
    while (now < until) {
      now = std::min(until, now + std::chrono::milliseconds(50));
      for (const auto& [id, member] : std::map(membership.pool())) {
        if (std::find(silent.begin(), silent.end(), id) == silent.end()) {
          membership.Beat(id, member.heartbeat, now);
        }
      }
      for (const Loss& loss : membership.Tick(now)) {
        Carry(conductor->Lost(loss, now));
      }
      Carry(conductor->Tick(now));
    }
  }

  void CloseSession(MemberId member) {
    membership.ReportLost(member, {.reporter = 0, .what = "the session's connection closed"});
    for (const Loss& loss : membership.Tick(now)) {
      Carry(conductor->Lost(loss, now));
    }
  }

  void Say(MemberId from, v1::MemberMessage message) {
    Carry(conductor->Handle(from, std::move(message), now));
  }

  std::uint32_t GenerationOf(MemberId member) const {
    const auto found = assignments.find(member);
    return found == assignments.end() ? 0 : found->second.generation();
  }

  void Ready(MemberId member, absl::Status error = absl::OkStatus()) {
    v1::MemberMessage message;
    message.mutable_ready()->set_generation(GenerationOf(member));
    message.mutable_ready()->set_lab_hash(assignments[member].lab_hash());
    message.mutable_ready()->set_code(static_cast<int>(error.code()));
    message.mutable_ready()->set_error(MessageOf(error));
    Say(member, message);
  }

  void Beat(MemberId member, Step step, const std::string& phase) {
    membership.Beat(member, {.generation = GenerationOf(member), .step = step, .phase = phase},
                    now);
  }

  void Row(MemberId member, Step step) {
    v1::MemberMessage message;
    message.mutable_steps()->set_generation(GenerationOf(member));
    message.mutable_steps()->add_rows()->set_step(step);
    Say(member, message);
  }

  void Arrive(MemberId member, const std::string& barrier, const std::string& token = "") {
    v1::MemberMessage message;
    message.mutable_arrival()->set_generation(GenerationOf(member));
    message.mutable_arrival()->set_barrier(barrier);
    message.mutable_arrival()->set_token(token);
    Say(member, message);
  }

  void Report(MemberId reporter, Rank lost, Step step) {
    v1::MemberMessage message;
    message.mutable_peer_lost()->set_generation(GenerationOf(reporter));
    message.mutable_peer_lost()->set_rank(lost);
    message.mutable_peer_lost()->set_what("connection reset");
    message.mutable_peer_lost()->set_step(step);
    Say(reporter, message);
  }

  v1::MemberMessage ResultOf(MemberId member, absl::Status error = absl::OkStatus()) {
    v1::MemberMessage message;
    message.mutable_result()->set_generation(GenerationOf(member));
    message.mutable_result()->set_code(static_cast<int>(error.code()));
    message.mutable_result()->set_error(MessageOf(error));
    if (assignments[member].calibrate()) {
      message.mutable_result()->set_native_compute_ns(10'000'000);
      message.mutable_result()->set_native_exchange_ns(2'000'000);
    }
    return message;
  }
  void Result(MemberId member, absl::Status error = absl::OkStatus()) {
    Say(member, ResultOf(member, std::move(error)));
  }

  // The members of the generation under way, by what they were assigned last.
  std::vector<MemberId> Assigned() const {
    std::vector<MemberId> members;
    for (const auto& [id, assignment] : assignments) {
      if (assignment.generation() == latest_generation) {
        members.push_back(id);
      }
    }
    return members;
  }

  void AllReady() {
    for (const MemberId member : Assigned()) {
      Ready(member);
    }
  }
  void AllDone() {
    for (const MemberId member : Assigned()) {
      Result(member);
    }
  }

  void Carry(Actions actions) {
    for (Action& action : actions) {
      EXPECT_FALSE(end.has_value()) << "nothing comes after the end";
      std::visit(Overloaded{[this](SendToMember& send) { Sent(send); },
                            [this](TellClient& tell) { events.push_back(std::move(tell.event)); },
                            [this](EndLab& ended) { end = ended; }},
                 action);
    }
  }

  int CountOf(v1::CoordinatorMessage::KindCase kind, MemberId member) const {
    return static_cast<int>(
        std::count_if(sent.begin(), sent.end(), [&](const SendToMember& message) {
          return message.member == member && message.message.kind_case() == kind;
        }));
  }

  std::string VerdictText() const { return end ? end->text : "(none yet)"; }

  int launched = 0;  // of each role, as members say when they join
  Nanos now = std::chrono::seconds(100);
  Membership membership;
  ForecastFn forecast = [](const experiment::Cell& cell) -> absl::StatusOr<CellForecast> {
    return cell.spec.fabric.native() ? CellForecast{}
                                     : CellForecast{.modelled_step_seconds = 0.01,
                                                    .modelled_compute_seconds = 0.001,
                                                    .modelled_exchange_seconds = 0.001};
  };
  std::unique_ptr<Conductor> conductor;
  std::vector<MemberId> workers;
  std::vector<MemberId> servers;
  std::map<MemberId, v1::Assignment> assignments;  // the latest of each
  std::uint32_t latest_generation = 0;
  std::vector<SendToMember> sent;
  std::vector<v1::RunEvent> events;
  std::optional<EndLab> end;

 private:
  void Sent(SendToMember& send) {
    if (send.message.has_assignment()) {
      assignments[send.member] = send.message.assignment();
      latest_generation = send.message.assignment().generation();
    }
    sent.push_back(std::move(send));
  }
};

}  // namespace ranklab::coordinator
