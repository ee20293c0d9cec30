#include "transport/shaped_wire.h"
