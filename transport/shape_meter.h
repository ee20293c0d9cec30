// Whether a shaped endpoint kept its word: lateness and achieved figures of the messages that it
// delivered. Bounded memory, a few operations a message.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "core/units.h"
#include "fabric/link_model.h"

namespace ranklab::transport {

// Of the modelled messages that one endpoint received, in real (dilated) time.
struct ShapeReport {
  std::int64_t messages = 0;
  // Lateness is real completion minus modelled arrival, where positive. A message that is late by
  // more than max(5 % of its modelled duration, 0.2 ms) could not keep up.
  std::int64_t could_not_keep_up = 0;
  std::vector<std::int64_t> lateness_log2_us;  // [k]: late by [2^k, 2^(k+1)) us; [0]: below 2 us
  Nanos lateness_max{};

  // Bytes / time at the receiver's port, in bytes per second, of messages of at least 64 KiB. Waits
  // behind other messages at either port are not in it.
  std::int64_t bandwidth_samples = 0;
  double achieved_bandwidth_median = 0;
  double achieved_bandwidth_p90 = 0;  // slower than this in 10 % of the messages

  // From first byte out to delivery, less waits at the receiver's port and the bytes' own time, of
  // messages of at most 1 KiB: alpha, and what this machine and injections add.
  std::int64_t latency_samples = 0;
  Nanos latency_median{};
  Nanos latency_p90{};

  // How late this process's loop ran the deliveries. Up to 1 ms of it is taken off the departure of
  // messages sent from the delivery, so that it does not add up along a chain of messages.
  Nanos loop_late_p90{};
};

// A uniform sample of everything seen. Source: J. S. Vitter, algorithm R, ACM TOMS 11(1), 1985.
class Reservoir {
 public:
  explicit Reservoir(std::uint64_t seed) : random_(seed) {}

  void Add(double value);
  std::int64_t seen() const { return seen_; }
  double Quantile(double share) const;  // nearest rank; 0 of nothing

 private:
  static constexpr std::size_t kCapacity = 1024;

  Random random_;
  std::int64_t seen_ = 0;
  std::vector<double> kept_;
};

class ShapeMeter {
 public:
  // `port` is dilated.
  ShapeMeter(const fabric::LinkSpec& port, std::uint64_t seed);

  struct Delivery {
    Bytes size = 0;
    Nanos departs{};    // first byte left the sender's port
    Nanos begins{};     // the receiver's port was free for it
    Nanos arrives{};    // modelled
    Nanos completed{};  // the last byte was really here
    Nanos delivered{};  // the program was told
    Nanos forgiven{};   // of delivered - arrives, taken off the next departure
  };
  void Record(const Delivery& delivery);

  ShapeReport Report() const;

 private:
  static constexpr std::size_t kLatenessSlots = 32;  // the last: half an hour and more

  fabric::LinkSpec port_;
  std::int64_t messages_ = 0;
  std::int64_t could_not_keep_up_ = 0;
  Nanos lateness_max_{};
  std::array<std::int64_t, kLatenessSlots> lateness_log2_us_{};
  Reservoir bandwidth_;
  Reservoir latency_;
  Reservoir loop_late_;
};

}  // namespace ranklab::transport
