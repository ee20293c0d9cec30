#include "fabric/device_model.h"
