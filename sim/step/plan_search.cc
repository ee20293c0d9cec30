#include "sim/step/plan_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "core/status.h"

namespace ranklab::sim {
namespace {

constexpr std::size_t kKept = 10;

std::vector<int> Divisors(int n, int at_most) {
  std::vector<int> divisors;
  for (int i = 1; i <= std::min(n, at_most); ++i) {
    if (n % i == 0) {
      divisors.push_back(i);
    }
  }
  return divisors;
}

// All micro-batches, interleavings, shardings and recomputations of these degrees.
void AddVariants(const PlanRequest& request, const ParallelPlan& degrees,
                 std::vector<ParallelPlan>& plans) {
  ParallelPlan plan = degrees;
  for (int micro_batch = 1; micro_batch <= 16; micro_batch *= 2) {
    plan.micro_batch = micro_batch;
    for (const int interleave : Divisors(request.model.layers / plan.pipeline, 8)) {
      plan.interleave = interleave;
      plan.order = interleave > 1 ? PipelineOrder::kInterleaved : PipelineOrder::k1F1B;
      for (int zero = 0; zero <= 3; ++zero) {
        plan.zero = zero;
        for (const Recompute recompute :
             {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
          plan.recompute = recompute;
          const bool nothing_to_select =
              request.flash_attention && recompute == Recompute::kSelective;
          const bool nothing_to_shard = plan.data == 1 && zero > 0;
          if (!nothing_to_select && !nothing_to_shard && CheckPlan(request.model, plan).ok()) {
            plans.push_back(plan);
          }
        }
      }
    }
  }
}

struct Bounded {
  double bound = 0;  // seconds
  ParallelPlan plan{};
};

void Keep(std::vector<Candidate>& best, const Candidate& candidate) {
  const auto slower = [](double seconds, const Candidate& kept) {
    return seconds < kept.time.seconds;
  };
  best.insert(std::upper_bound(best.begin(), best.end(), candidate.time.seconds, slower),
              candidate);
  if (best.size() > kKept) {
    best.pop_back();
  }
}

struct Part {
  const char* words;
  double StepTime::*seconds;
};

constexpr std::array kParts = {
    Part{"compute (recomputation and small kernels included)", &StepTime::compute},
    Part{"exposed tensor-parallel communication", &StepTime::tensor},
    Part{"sending between stages", &StepTime::pipeline},
    Part{"exposed gradients and weights", &StepTime::gradients},
    Part{"optimizer", &StepTime::update},
    Part{"bubble", &StepTime::bubble},
};

// The fastest of the fitting variants with these degrees; nothing if none fits.
absl::StatusOr<Candidate> FastestWith(const PlanRequest& request, int tensor, int pipeline) {
  if (request.devices % (tensor * pipeline) != 0) {
    return NotFound("%d devices are not divisible", request.devices);
  }
  std::vector<ParallelPlan> plans;
  ParallelPlan degrees = {.data = request.devices / (tensor * pipeline),
                          .tensor = tensor,
                          .pipeline = pipeline,
                          .sequence_parallel = tensor > 1,
                          .global_batch = request.global_batch,
                          .flash_attention = request.flash_attention,
                          .overlap_gradients = true};
  AddVariants(request, degrees, plans);
  std::vector<Candidate> best;
  for (const ParallelPlan& plan : plans) {
    const MemoryUse memory = MemoryOf(request.model, plan);
    if (memory.total() > request.machine.accelerator.memory_bytes ||
        (!best.empty() &&
         StepLowerBound(request.machine, request.model, plan) > best.front().time.seconds)) {
      continue;
    }
    ASSIGN_OR_RETURN(const PlayedStep step, PlayStep(request.machine, request.model, plan));
    Keep(best, {.plan = plan, .time = step.time, .memory = memory});
  }
  if (best.empty()) {
    return NotFound("no plan with tp %d pp %d fits", tensor, pipeline);
  }
  return best.front();
}

std::string CompareDegrees(const Candidate& best, const absl::StatusOr<Candidate>& other,
                           const std::string& what, const std::string& otherwise) {
  if (!other.ok()) {
    return absl::StrFormat("%s: with %s %s.", what, otherwise, MessageOf(other.status()));
  }
  return absl::StrFormat("%s: the best plan with %s is %s", what, otherwise,
                         WhyItLost(best, *other));
}

}  // namespace

std::vector<ParallelPlan> LegalPlans(const PlanRequest& request) {
  std::vector<ParallelPlan> plans;
  const int most_tensor = 2 * request.machine.fabric.node_devices;
  for (const int tensor : Divisors(request.devices, most_tensor)) {
    for (const int pipeline : Divisors(request.devices / tensor, request.model.layers)) {
      ParallelPlan plan = {.data = request.devices / (tensor * pipeline),
                           .tensor = tensor,
                           .pipeline = pipeline,
                           .sequence_parallel = tensor > 1,
                           .global_batch = request.global_batch,
                           .flash_attention = request.flash_attention,
                           .overlap_gradients = true};
      plan.expert = std::gcd(plan.data, request.model.experts);
      if (request.model.heads % tensor == 0 && request.model.layers % pipeline == 0 &&
          request.global_batch % plan.data == 0) {
        AddVariants(request, plan, plans);
      }
    }
  }
  return plans;
}

absl::StatusOr<PlanRanking> SearchPlans(const PlanRequest& request) {
  const std::vector<ParallelPlan> plans = LegalPlans(request);
  if (plans.empty()) {
    return InvalidArgument(
        "no plan divides %s into %d devices with a batch of %d sequences; take "
        "a batch that is a multiple of a large power of two, or fewer devices",
        request.model.name, request.devices, request.global_batch);
  }
  PlanRanking ranking{.legal = static_cast<int>(plans.size())};
  std::vector<Bounded> fitting;
  double least = std::numeric_limits<double>::infinity();
  for (const ParallelPlan& plan : plans) {
    const double bytes = MemoryOf(request.model, plan).total();
    if (bytes > request.machine.accelerator.memory_bytes) {
      ++ranking.too_large;
      if (bytes < least) {
        least = bytes;
        ranking.smallest_misfit =
            absl::StrFormat("%s needs %.1f GB", DescribePlan(plan), bytes / 1e9);
      }
      continue;
    }
    fitting.push_back(
        {.bound = StepLowerBound(request.machine, request.model, plan), .plan = plan});
  }
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const Bounded& a, const Bounded& b) { return a.bound < b.bound; });
  for (const Bounded& next : fitting) {
    if (request.prune && ranking.best.size() == kKept &&
        next.bound > ranking.best.back().time.seconds) {
      break;
    }
    ++ranking.played;
    ASSIGN_OR_RETURN(const PlayedStep step, PlayStep(request.machine, request.model, next.plan));
    Keep(ranking.best,
         {.plan = next.plan, .time = step.time, .memory = MemoryOf(request.model, next.plan)});
  }
  return ranking;
}

std::string WhyItLost(const Candidate& best, const Candidate& slower) {
  const Part* most = &kParts.front();
  double growth = -std::numeric_limits<double>::infinity();
  for (const Part& part : kParts) {
    const double more = slower.time.*part.seconds - best.time.*part.seconds;
    if (more > growth) {
      growth = more;
      most = &part;
    }
  }
  return absl::StrFormat("%.1f %% slower (%s): %.3f s more %s.",
                         100 * (slower.time.seconds / best.time.seconds - 1),
                         DescribePlan(slower.plan), growth, most->words);
}

std::vector<std::string> ExplainBest(const PlanRequest& request, const PlanRanking& ranking) {
  const Candidate& best = ranking.best.front();
  const ParallelPlan& plan = best.plan;
  const int node = request.machine.fabric.node_devices;
  std::vector<std::string> sentences;
  if (plan.tensor <= node && request.model.heads % (2 * node) == 0) {
    sentences.push_back(CompareDegrees(best, FastestWith(request, 2 * node, plan.pipeline),
                                       "tensor parallelism stays inside the node",
                                       absl::StrFormat("%d tensor ranks, two nodes,", 2 * node)));
  }
  if (plan.tensor > 1) {
    sentences.push_back(CompareDegrees(best, FastestWith(request, plan.tensor / 2, plan.pipeline),
                                       absl::StrFormat("%d tensor ranks, not fewer", plan.tensor),
                                       absl::StrFormat("%d", plan.tensor / 2)));
  }
  if (plan.pipeline > 1) {
    sentences.push_back(
        CompareDegrees(best, FastestWith(request, plan.tensor, plan.pipeline / 2),
                       absl::StrFormat("%d pipeline stages, not fewer", plan.pipeline),
                       absl::StrFormat("%d", plan.pipeline / 2)));
  }
  if (request.model.layers % (2 * plan.pipeline) == 0) {
    sentences.push_back(
        CompareDegrees(best, FastestWith(request, plan.tensor, 2 * plan.pipeline),
                       absl::StrFormat("%d pipeline stages, not more", plan.pipeline),
                       absl::StrFormat("%d", 2 * plan.pipeline)));
  }
  return sentences;
}

}  // namespace ranklab::sim
