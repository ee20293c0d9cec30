// Workers of one shaped ring as threads of this process: each with its own live loop, TCP port,
// connections and training run, as in processes of their own. Tests decide the modelled port and
// may put something between a worker's sockets and its shaping.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "experiment/lab_spec.h"
#include "experiment/run_record.h"
#include "fabric/held_to_account.h"
#include "fabric/link_model.h"
#include "transport/tcp/live_loop.h"
#include "transport/wire.h"

namespace ranklab::worker {

// What a worker of the ring puts around the wire that its port has opened; on its loop.
using WrapWire = std::function<std::unique_ptr<transport::Wire>(transport::LiveLoop& loop,
                                                                std::unique_ptr<transport::Wire>)>;

struct LiveRingOptions {
  experiment::LabSpec spec;  // a collective over TCP; synthetic data
  fabric::LinkSpec port;     // that the wires are shaped like, in wall time
  fabric::LinkSpec claimed;  // that the account is held against, in wall time
  double time_scale = 1;     // of the modelled compute
  WrapWire wrap;             // none: the wire as it is
};

struct RankOutcome {
  std::vector<experiment::StepRecord> steps;
  fabric::NetworkVerdict network;  // as the record judges it
};

// [rank]. The test fails when a worker's run does.
std::vector<RankOutcome> RunLiveRing(const LiveRingOptions& options);

}  // namespace ranklab::worker
