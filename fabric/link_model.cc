#include "fabric/link_model.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace ranklab::fabric {
namespace {

constexpr int kRetransmissionsMax = 15;

// Requires: b >= 0.
Nanos SaturatingAdd(Nanos a, Nanos b) { return a > Nanos::max() - b ? Nanos::max() : a + b; }

void CheckSpec(const LinkSpec& spec) {
  RANKLAB_CHECK(spec.bandwidth.bytes_per_second > 0, "a link of %g bytes per second",
                spec.bandwidth.bytes_per_second);
  RANKLAB_CHECK(spec.alpha >= Nanos(0) && spec.jitter >= Nanos(0));
  RANKLAB_CHECK(spec.retransmit_after >= Nanos(0));
  RANKLAB_CHECK(spec.loss_probability >= 0 && spec.loss_probability <= 1);
}

}  // namespace

Nanos TransferTime(Bytes size, Bandwidth bandwidth) {
  RANKLAB_CHECK(size >= 0);
  const double nanos = static_cast<double>(size) / bandwidth.bytes_per_second * 1e9;
  // 2^63 is the first double that does not fit.
  return nanos < 0x1p63 ? Nanos(std::llround(nanos)) : Nanos::max();
}

LinkModel::LinkModel(const LinkSpec& spec, std::uint64_t seed) : spec_(spec), random_(seed) {
  CheckSpec(spec);
}

void LinkModel::Reshape(const LinkSpec& spec) {
  CheckSpec(spec);
  spec_ = spec;
}

Nanos LinkModel::DrawDelay() {
  Nanos delay = spec_.alpha;
  if (spec_.jitter > Nanos(0)) {
    const double jitter = random_.Uniform() * static_cast<double>(spec_.jitter.count());
    delay = SaturatingAdd(delay, std::min(Nanos(std::llround(jitter)), spec_.jitter));
  }
  if (spec_.loss_probability > 0) {
    for (int i = 0; i < kRetransmissionsMax && random_.Uniform() < spec_.loss_probability; ++i) {
      delay = SaturatingAdd(delay, spec_.retransmit_after);
    }
  }
  return delay;
}

Passage Path::Cross(Nanos now, Bytes size, std::span<LinkModel* const> links) {
  RANKLAB_CHECK(size >= 0);
  Passage passage{.starts = now, .leaves = now, .arrives = now};
  Nanos delay{};
  for (LinkModel* link : links) {
    passage.starts = std::max(passage.starts, link->busy_until_);
    link->busy_until_ = SaturatingAdd(passage.starts, TransferTime(size, link->spec_.bandwidth));
    passage.leaves = std::max(passage.leaves, link->busy_until_);
    delay = SaturatingAdd(delay, link->DrawDelay());
  }
  passage.arrives = SaturatingAdd(passage.leaves, delay);
  return passage;
}

Passage Path::Depart(Nanos now, Bytes size, std::span<LinkModel* const> sender_links) {
  return Cross(now, size, sender_links);
}

Passage Path::Arrive(Nanos reaches, Nanos floor_arrives, Bytes size,
                     std::span<LinkModel* const> receiver_links) {
  Passage passage = Cross(reaches, size, receiver_links);
  passage.arrives = std::max(passage.arrives, floor_arrives);
  return passage;
}

}  // namespace ranklab::fabric
