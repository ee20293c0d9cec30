// gloo's part in `ranklab collective --rivals`, one process a rank:
//   gloo_rival RANK RANKS FOLDER
// Ranks meet through files in FOLDER, read their trials from standard input and answer on standard
// output. All-reduces are rings, gloo's own choice for large buffers.
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <signal.h>
#include <sys/prctl.h>

#include "bench/rivals/rival.h"

namespace {

using rival::Trial;

// gloo's own loop, compiled here, so that it gets the flags of ranklab's.
void Sum(void* to, const void* a, const void* b, std::size_t count) {
  auto* const sum = static_cast<float*>(to);
  const auto* const left = static_cast<const float*>(a);
  const auto* const right = static_cast<const float*>(b);
  for (std::size_t i = 0; i < count; ++i) {
    sum[i] = left[i] + right[i];
  }
}

class Rank {
 public:
  Rank(int rank, int ranks, const std::string& folder) : rank_(rank), ranks_(ranks) {
    gloo::transport::tcp::attr address;
    address.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(address);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    gloo::rendezvous::FileStore store(folder);
    context->connectFullMesh(store, device);
    context_ = context;
  }

  void Measure(const Trial& trial) {
    const auto barrier = [this] {
      gloo::BarrierOptions options(context_);
      options.setTag(NextTag());
      gloo::barrier(options);
    };
    const auto call = [&] { Call(trial); };
    rival::Fill(trial, ranks_, rank_, buffers_);
    rival::SecondsOf(trial.warmup, barrier, call);
    const double seconds = rival::SecondsOf(trial.iterations, barrier, call);
    std::int64_t wrong = 0;
    if (trial.check) {
      rival::Fill(trial, ranks_, rank_, buffers_);
      call();
      wrong = rival::CountWrong(trial, ranks_, rank_, buffers_);
    }
    rival::Say(seconds, wrong);
  }

 private:
  std::uint32_t NextTag() { return ++tag_; }

  void Call(const Trial& trial) {
    std::vector<float>& input = buffers_.input;
    std::vector<float>& output = buffers_.output;
    if (trial.collective == "all_reduce") {
      gloo::AllreduceOptions options(context_);
      options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
      options.setReduceFunction(Sum);
      if (!trial.in_place) {
        options.setInput(input.data(), input.size());
      }
      options.setOutput(output.data(), output.size());
      options.setTag(NextTag());
      gloo::allreduce(options);
    } else if (trial.collective == "all_gather") {
      gloo::AllgatherOptions options(context_);
      if (!trial.in_place) {
        options.setInput(input.data(), input.size());
      }
      options.setOutput(output.data(), output.size());
      options.setTag(NextTag());
      gloo::allgather(options);
    } else {
      gloo::BroadcastOptions options(context_);
      if (!trial.in_place && rank_ == 0) {
        options.setInput(input.data(), input.size());
      }
      options.setOutput(output.data(), output.size());
      options.setRoot(0);
      options.setTag(NextTag());
      gloo::broadcast(options);
    }
  }

  const int rank_;
  const int ranks_;
  std::shared_ptr<gloo::Context> context_;
  std::uint32_t tag_ = 0;
  rival::Buffers buffers_;
};

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 4) {
    std::fprintf(stderr, "usage: gloo_rival RANK RANKS FOLDER\n");
    return 2;
  }
  try {
    Rank rank(std::atoi(argv[1]), std::atoi(argv[2]), argv[3]);
    std::printf("ready\n");
    std::fflush(stdout);
    Trial trial;
    for (std::string line; std::getline(std::cin, line);) {
      if (rival::ReadTrial(line, trial)) {
        rank.Measure(trial);
      }
    }
  } catch (const std::exception& error) {
    std::printf("!%s\n", error.what());
    return 3;
  }
}
