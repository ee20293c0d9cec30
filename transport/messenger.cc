#include "transport/messenger.h"
