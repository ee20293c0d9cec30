#include "fabric/link_model.h"
