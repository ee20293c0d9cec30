// XXH3 with the widest vectors that this processor has, where the library can choose: plain calls
// take those of the oldest x86, at a third of the speed.
#pragma once

#include <xxhash.h>

#ifdef RANKLAB_XXHASH_DISPATCHES
#include <xxh_x86dispatch.h>
#endif
