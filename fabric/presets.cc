#include "fabric/presets.h"
