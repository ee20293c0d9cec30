// Functions that run on a GPU, and on the host where they are tested.
#pragma once

#ifdef __CUDACC__
#define RANKLAB_HOST_DEVICE __host__ __device__
#else
#define RANKLAB_HOST_DEVICE
#endif
