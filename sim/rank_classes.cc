#include "sim/rank_classes.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_format.h>

namespace ranklab::sim {
namespace {

using Color = std::int32_t;

// Numbers things in the order in which they are first seen.
template <typename Key>
class Numbering {
 public:
  Color Of(const Key& key) {
    return numbers_.try_emplace(key, static_cast<Color>(numbers_.size())).first->second;
  }
  void Clear() { numbers_.clear(); }
  Color size() const { return static_cast<Color>(numbers_.size()); }

 private:
  absl::flat_hash_map<Key, Color> numbers_;
};

class Refinement {
 public:
  Refinement(const RankPrograms& programs, int ranks, const fabric::CostModel& model,
             const Disturbances& disturbances)
      : programs_(programs),
        model_(model),
        disturbances_(disturbances),
        colors_(static_cast<std::size_t>(ranks)),
        next_(static_cast<std::size_t>(ranks)) {
    for (const ProgramOp& op : programs.ops()) {
      if (op.peer >= 0) {
        peers_.insert({op.peer, op.kind == collectives::OpKind::kSend});
      }
    }
  }

  // Whether it came to an end with no more than this many classes.
  bool Refine(std::int64_t most_classes) {
    ColorDisturbed();
    for (;;) {
      const Color before = count_;
      for (const auto& [by, sends] : peers_) {
        Split(by, sends);
      }
      if (count_ > most_classes) {
        return false;
      }
      if (count_ == before) {
        return true;
      }
    }
  }

  const std::vector<Color>& colors() const { return colors_; }
  Color count() const { return count_; }

 private:
  void ColorDisturbed() {
    Numbering<std::pair<double, double>> kinds;
    const Color usual = kinds.Of({0.0, 1.0});
    std::fill(colors_.begin(), colors_.end(), usual);
    for (const SlowRank& slow : disturbances_.ranks) {
      colors_[static_cast<std::size_t>(slow.rank)] = kinds.Of({slow.late, slow.port_factor});
    }
    count_ = kinds.size();
  }

  // By the color of the peer that lies `by` away and the kind of the link that is used.
  void Split(Rank by, bool sends) {
    numbering_.Clear();
    for (std::size_t rank = 0; rank < colors_.size(); ++rank) {
      const auto self = static_cast<Rank>(rank);
      const Rank peer = collectives::Translate(programs_.digits(), self, by);
      const int link = sends ? LinkKind(self, peer) : LinkKind(peer, self);
      next_[rank] = numbering_.Of({colors_[rank], colors_[static_cast<std::size_t>(peer)], link});
    }
    colors_.swap(next_);
    count_ = numbering_.size();
  }

  // 0, between nodes 1, and one for each disturbed link.
  int LinkKind(Rank from, Rank to) const {
    for (std::size_t i = 0; i < disturbances_.links.size(); ++i) {
      if (disturbances_.links[i].from == from && disturbances_.links[i].to == to) {
        return 2 + static_cast<int>(i);
      }
    }
    return model_.Between(from, to) ? 1 : 0;
  }

  const RankPrograms& programs_;
  const fabric::CostModel& model_;
  const Disturbances& disturbances_;
  std::set<std::pair<Rank, bool>>
      peers_;                  // different ones of the list: how far, and whether sent to
  std::vector<Color> colors_;  // [rank]
  std::vector<Color> next_;
  Color count_ = 0;
  Numbering<std::tuple<Color, Color, int>> numbering_;
};

RankClasses ClassesOf(const std::vector<Color>& colors, Color count) {
  RankClasses classes;
  classes.class_of = colors;
  classes.members.resize(static_cast<std::size_t>(count));
  classes.representative.resize(static_cast<std::size_t>(count));
  for (std::size_t rank = colors.size(); rank-- > 0;) {
    const auto color = static_cast<std::size_t>(colors[rank]);
    ++classes.members[color];
    classes.representative[color] = static_cast<Rank>(rank);
  }
  return classes;
}

RankClasses OneClass(int ranks) {
  return {.representative = {0},
          .members = {ranks},
          .class_of = std::vector<std::int32_t>(static_cast<std::size_t>(ranks)),
          .gave_up = {}};
}

}  // namespace

RankClasses NobodyAlike(int ranks) {
  RankClasses classes;
  classes.representative.resize(static_cast<std::size_t>(ranks));
  std::iota(classes.representative.begin(), classes.representative.end(), 0);
  classes.members.assign(static_cast<std::size_t>(ranks), 1);
  classes.class_of.assign(classes.representative.begin(), classes.representative.end());
  return classes;
}

RankClasses FindRanksAlike(const RankPrograms& programs, int ranks, const fabric::CostModel& model,
                           const Disturbances& disturbances, std::int64_t most_ops) {
  const auto give_up = [ranks](std::string why) {
    RankClasses classes = NobodyAlike(ranks);
    classes.gave_up = std::move(why);
    return classes;
  };
  if (!programs.shared()) {
    return give_up("its ranks do different things: each has a list of its own");
  }
  if (disturbances.none() && model.ranks_per_node == 0) {
    return OneClass(ranks);
  }
  const std::int64_t ops = std::max(programs.CountOf(0), 1);
  Refinement refinement(programs, ranks, model, disturbances);
  if (!refinement.Refine(std::min<std::int64_t>(most_ops / ops, ranks - 1))) {
    return give_up(absl::StrFormat(
        "a disturbance reaches the ranks at different times: more than %d kinds of them",
        refinement.count() - 1));
  }
  return ClassesOf(refinement.colors(), refinement.count());
}

}  // namespace ranklab::sim
