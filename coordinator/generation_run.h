// One generation at work: a repeat of a cell, or a calibration, from its assignments to the last
// member's result. Pure: messages and instants in, actions out.
//
//   assignments -> Ready of all -> Go -> rows, barriers -> CellResult of all
//        20 s                     the cell's time-out
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "coordinator/actions.h"
#include "coordinator/barrier.h"
#include "coordinator/loss_inquiry.h"
#include "coordinator/membership.h"
#include "core/units.h"
#include "protos/coordinator.pb.h"

namespace ranklab::coordinator {

struct GenerationTask {
  v1::Assignment assignment;  // what is equal for all members; the run adds the rest
  std::string cell_name;      // "scale cell 5", for messages
  int cell = 0;               // in the order of the expanded lab, for the client
  Step steps = 0;             // of a worker, at most
  bool asynchronous = false;  // workers are in steps of their own
  bool continues = false;     // on_loss: continue
  bool replicated = false;    // the next server has a replica of each one's shard
  std::uint64_t secret = 0;
  Nanos ready_timeout = std::chrono::seconds(20);
};

// How a generation ended.
struct Ending {
  absl::Status status;  // Ok: every member said its result
  // 0; 1, it failed; 2, a mistake in the input; 3, a lost peer or a time-out.
  int exit_code = 0;
};

class GenerationRun {
 public:
  GenerationRun(GenerationTask task, Generation generation, const Membership& membership);

  void Begin(Nanos now, Actions& actions);

  // Messages of other generations are ignored, as are repeated ones.
  void Handle(MemberId from, v1::MemberMessage message, Nanos now, Actions& actions);

  // Goes on without the member, if the lab wants that and what it had is not lost with it; else the
  // generation ends. Requires: the member is of this generation.
  void Lost(const Loss& loss, Actions& actions);

  void Tick(Nanos now);

  // Once set, nothing changes any more.
  const std::optional<Ending>& ending() const { return ending_; }

  // To every member: the generation is over before its time.
  void Abort(const std::string& reason, Actions& actions) const;

  // Results by rank, as far as they came; wall time since the assignments.
  v1::CellEnded Report(Nanos now) const;

  const Generation& generation() const { return generation_; }
  const GenerationTask& task() const { return task_; }
  bool running() const { return running_; }  // Go was said

 private:
  struct Participant {
    Member member;
    bool ready = false;
    bool lost = false;
    std::optional<Rank> inherited{};  // whose shard a server has taken over
    std::optional<v1::CellResult> result;
    Step last_row = 0;
  };

  void OnReady(Participant& from, const v1::Ready& ready, Nanos now, Actions& actions);
  void OnRows(Participant& from, v1::StepRows rows, Actions& actions);
  void OnArrival(Participant& from, const v1::BarrierArrival& arrival, Nanos now, Actions& actions);
  void OnResult(Participant& from, v1::CellResult result, Nanos now);
  void OnPeerLost(const Participant& from, const v1::PeerLost& report, Nanos now);
  void OnApplied(const Participant& from, v1::InjectionApplied applied, Actions& actions) const;

  // What is lost with it, "" if nothing is.
  std::string WhyNotWithout(const Participant& lost) const;
  void GoOnWithout(Participant& lost, const Loss& loss, Actions& actions);
  Participant& At(Endpoint endpoint);
  const Participant& At(Endpoint endpoint) const;
  std::optional<Endpoint> HeirOf(Endpoint endpoint) const;
  void Release(const std::string& barrier, const std::vector<Endpoint>& released, Actions& actions);
  void EndIfAllAreDone();

  void Go(Nanos now, Actions& actions);
  void Failed(const Participant& from, const absl::Status& why, Nanos now);
  void Refused(const Participant& from, const absl::Status& why, Nanos now);
  void EndRefused();
  void CheckDeadlines(Nanos now);
  void End(int exit_code, absl::Status status);
  bool SomeoneIsSilent(Nanos now) const;
  absl::Status LossOf(Endpoint whom, Step known_step, const std::string& evidence) const;
  Step StepOf(const Participant& participant) const;
  Step LatestWorkerStep() const;
  std::string Place(Step step) const;
  std::string WhereIs(const Participant& participant) const;

  GenerationTask task_;
  Generation generation_;
  const Membership& membership_;
  std::map<MemberId, Participant> participants_;
  std::map<std::string, Barrier> barriers_;
  std::vector<v1::SurvivedLoss> losses_;
  LossInquiry inquiry_;
  bool suspecting_ = false;                   // the inquiry has something to go on
  std::map<Endpoint, absl::Status> refused_;  // memory, and how they said so
  Nanos refused_at_{};                        // the first of them
  bool running_ = false;
  Nanos began_{};
  Nanos deadline_{};
  std::optional<Ending> ending_;
};

}  // namespace ranklab::coordinator
