// One algorithm several times over: the buffer is cut into slices, and each slice has its own copy
// in channels of its own. Makes pipelines of trees and several rings of one.
#pragma once

#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

struct Slicing {
  int slices = 1;
  bool mirror_odd = false;  // in odd slices rank r takes the place of rank P-1-r
  bool in_turn = false;     // all slices in the same channels, one behind the other
};

// In channels of their own, slices stand side by side: op i of each before op i+1 of any, so that
// first messages go first. In turn, all of one slice stand before the next: a receive begins once
// the slice before has got past it, which keeps many pieces from crowding a port. Names and scratch
// sizes are kept. One slice, not mirrored: the schedule itself.
// Requires: in place; in channel 0, or in turn; a collective that does not tie chunks to ranks
// (all-reduce, broadcast, reduce); mirrored, no root.
Schedule InChannels(Schedule schedule, const Slicing& slicing);

}  // namespace ranklab::collectives
