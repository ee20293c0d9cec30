#include "fabric/cost.h"
