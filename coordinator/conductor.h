// Conducts one lab on the pool: waits for members, calibrates, then forms one generation after
// another, cell by cell and repeat by repeat, until the verdict. Pure: what happens and when goes
// in, actions come out in order; Membership is shared with the service, which owns the sockets.
//
//   gathering --> calibrating (if time_scale is to be chosen) --> running --> over
//        \______________\____________________________________________/  any loss, error, time-out
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "coordinator/actions.h"
#include "coordinator/forecast.h"
#include "coordinator/generation_run.h"
#include "coordinator/lab_plan.h"
#include "coordinator/membership.h"
#include "core/random.h"
#include "core/units.h"
#include "experiment/lab_spec.h"
#include "protos/coordinator.pb.h"

namespace ranklab::coordinator {

struct ConductorOptions {
  Nanos join_timeout{};       // for the members that the largest cell needs
  bool dismiss_pool = false;  // when the lab is over, however it ends
  bool keep_pool = false;     // a loss dismisses the pool, unless it is kept
  std::uint64_t seed = 0;     // of the generations' secrets
  Nanos ready_timeout = std::chrono::seconds(20);
  // A lab that takes the whole pool begins once nobody has joined for this long.
  Nanos settle = std::chrono::seconds(1);
};

class Conductor {
 public:
  // Borrows membership and forecast for its life.
  Conductor(experiment::Lab lab, ConductorOptions options, Membership& membership,
            ForecastFn& forecast, Nanos now);

  // Each returns what is to be done, in order. After EndLab: nothing.
  Actions Joined(const PoolMember& member, Nanos now);
  Actions Lost(const Loss& loss, Nanos now);
  Actions Handle(MemberId from, v1::MemberMessage message, Nanos now);
  Actions Tick(Nanos now);  // every 50 ms or so: deadlines, and the begin
  Actions Cancel(const std::string& reason, Nanos now);

  // Into the running cell. Errors: FailedPrecondition, no cell is running; PrepareInjection's.
  absl::StatusOr<v1::InjectReply> Inject(const v1::InjectRequest& request, Actions& actions);

  void Describe(v1::StatusReply& status) const;  // lab, part, cell, repeat, ranks, ...
  const std::string& lab_name() const { return plan_.lab().name; }
  bool over() const { return stage_ == Stage::kOver; }

 private:
  enum class Stage : std::uint8_t { kGathering, kCalibrating, kRunning, kOver };

  void Gather(Nanos now, Actions& actions);
  void Prepare(Nanos now, Actions& actions);
  void Announce(Actions& actions);
  void BeginNext(Nanos now, Actions& actions);
  void BeginCalibration(int cell, Nanos now, Actions& actions);
  void BeginRun(const PlannedRun& run, Nanos now, Actions& actions);
  void Form(GenerationTask task, int servers, Nanos now, Actions& actions);
  GenerationTask TaskOf(const PlannedRun& run);
  void Advance(Nanos now, Actions& actions);  // if the generation has ended
  absl::Status KeepCalibration();
  void Log(const std::string& text, Nanos now, Actions& actions) const;
  void Finish(int exit_code, const std::string& text, Nanos now, Actions& actions);

  LabPlan plan_;
  ConductorOptions options_;
  Membership& membership_;
  ForecastFn& forecast_;
  Random secrets_;
  Stage stage_ = Stage::kGathering;
  Nanos gather_until_{};
  Nanos last_join_{};
  Nanos free_since_{};             // the last join, or the end of the generation before
  std::vector<int> to_calibrate_;  // cells, the next one last
  std::size_t next_run_ = 0;
  std::unique_ptr<GenerationRun> generation_;
  std::uint64_t injections_ = 0;
  bool cancelled_ = false;
};

}  // namespace ranklab::coordinator
