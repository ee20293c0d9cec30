// Events of a simulation by the instant at which they happen. Groups that do the same at the same
// time make few instants of many events: adding to one that was lately added to costs no search.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace ranklab::sim {

// `Event`: what happens; copied. Of one instant, in the order in which they were added.
template <typename Event>
class InstantQueue {
 public:
  bool empty() const { return heap_.empty(); }
  double next() const { return heap_.front().when; }  // Requires: not empty.

  void Add(double when, const Event& event) {
    for (const Recent& recent : recent_) {
      if (recent.when == when) {
        buckets_[recent.bucket].push_back(event);
        return;
      }
    }
    const std::size_t bucket = NewBucket();
    buckets_[bucket].push_back(event);
    heap_.push_back({when, next_order_++, bucket});
    std::push_heap(heap_.begin(), heap_.end(), Later);
    recent_[oldest_] = {when, bucket};
    oldest_ = (oldest_ + 1) % recent_.size();
  }

  // Moves all events of the next instant into `events`, which is emptied before.
  void Take(std::vector<Event>& events) {
    events.clear();
    const double when = next();
    while (!heap_.empty() && next() == when) {
      std::vector<Event>& bucket = buckets_[heap_.front().bucket];
      if (events.empty()) {
        events.swap(bucket);
      } else {
        events.insert(events.end(), bucket.begin(), bucket.end());
      }
      bucket.clear();
      free_.push_back(heap_.front().bucket);
      std::pop_heap(heap_.begin(), heap_.end(), Later);
      heap_.pop_back();
    }
    for (Recent& recent : recent_) {
      recent = recent.when == when ? Recent{} : recent;
    }
  }

 private:
  struct Instant {
    double when = 0;
    std::int64_t order = 0;
    std::size_t bucket = 0;
  };
  struct Recent {
    double when = std::numeric_limits<double>::quiet_NaN();
    std::size_t bucket = 0;
  };
  static bool Later(const Instant& a, const Instant& b) {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }

  std::size_t NewBucket() {
    if (free_.empty()) {
      buckets_.emplace_back();
      return buckets_.size() - 1;
    }
    const std::size_t bucket = free_.back();
    free_.pop_back();
    return bucket;
  }

  std::vector<Instant> heap_;
  std::vector<std::vector<Event>> buckets_;
  std::vector<std::size_t> free_;
  std::array<Recent, 4> recent_;
  std::size_t oldest_ = 0;
  std::int64_t next_order_ = 0;
};

}  // namespace ranklab::sim
