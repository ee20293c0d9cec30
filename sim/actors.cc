#include "sim/actors.h"

namespace ranklab::sim {

Actors::Actors(const RankPrograms& programs, const RankClasses& classes,
               const Disturbances& disturbances)
    : programs_(programs),
      classes_(classes),
      actors_(classes.representative.size()),
      stride_(programs.shared() ? actors_.size() : 1) {
  std::size_t states = 0;
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    const Rank rank = classes.representative[i];
    actors_[i].rank = rank;
    actors_[i].first_op = static_cast<std::size_t>(programs.FirstOf(rank));
    actors_[i].first_state = programs.shared() ? i : states;
    states += static_cast<std::size_t>(programs.CountOf(rank));
  }
  states_.resize(states);
  for (Actor actor = 0; actor < count(); ++actor) {
    for (OpIndex op = 0; op < CountOf(actor); ++op) {
      at(OpOf{actor, op}).causes = static_cast<std::uint32_t>(NodeOf({actor, op}).causes);
    }
  }
  for (const SlowRank& slow : disturbances.ranks) {
    ActorState& actor = at(ActorOf(slow.rank));
    actor.late = slow.late;
    actor.port_factor = slow.port_factor;
  }
}

}  // namespace ranklab::sim
