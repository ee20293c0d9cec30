# RANKLAB_CUDA: AUTO builds compute/cuda wherever an nvcc is found, ON insists on one, OFF does without.
# Sets RANKLAB_CUDA_BUILT. Code for sm_80 and sm_90, and PTX: of sm_90, which every later GPU can
# compile when a program starts, and of the newest that this nvcc knows. Programs are not linked with
# cuBLASLt (it is loaded where there is a GPU), so that they also start on machines without CUDA.
set(RANKLAB_CUDA AUTO CACHE STRING "CUDA: AUTO, ON or OFF")
set_property(CACHE RANKLAB_CUDA PROPERTY STRINGS AUTO ON OFF)
set(RANKLAB_CUDA_BUILT OFF)
set(RANKLAB_LEAST_NVCC 12.4)  # C++20, and memory pools

# Why there is no CUDA in this build; empty if there is.
function(ranklab_find_nvcc reason)
  set(${reason} "" PARENT_SCOPE)
  if(RANKLAB_CUDA STREQUAL OFF)
    set(${reason} "RANKLAB_CUDA is OFF" PARENT_SCOPE)
    return()
  endif()
  if(RANKLAB_SANITIZE)  # watches host code; device code would only lengthen the build
    set(${reason} "a build with sanitizers" PARENT_SCOPE)
    return()
  endif()
  find_program(RANKLAB_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda/bin PATH_SUFFIXES bin)
  if(NOT RANKLAB_NVCC)
    set(${reason} "no nvcc" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${RANKLAB_NVCC} --version OUTPUT_VARIABLE text)
  string(REGEX MATCH "release ([0-9.]+)" _ "${text}")
  if(CMAKE_MATCH_1 VERSION_LESS RANKLAB_LEAST_NVCC)
    set(${reason} "${RANKLAB_NVCC} is ${CMAKE_MATCH_1}, and ${RANKLAB_LEAST_NVCC} is needed" PARENT_SCOPE)
  endif()
endfunction()

ranklab_find_nvcc(RANKLAB_WHY_NO_CUDA)
if(RANKLAB_WHY_NO_CUDA)
  message(STATUS "CUDA is not in this build: ${RANKLAB_WHY_NO_CUDA}")
  if(RANKLAB_CUDA STREQUAL ON)
    message(FATAL_ERROR "RANKLAB_CUDA is ON")
  endif()
else()
  execute_process(COMMAND ${RANKLAB_NVCC} --list-gpu-arch OUTPUT_VARIABLE architectures OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX MATCHALL "[0-9]+" architectures "${architectures}")
  list(SORT architectures COMPARE NATURAL)
  list(GET architectures -1 newest)
  set(CMAKE_CUDA_ARCHITECTURES "80-real;90;${newest}-virtual")
  set(CMAKE_CUDA_COMPILER ${RANKLAB_NVCC})
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc has it.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  # Kernels use constexpr functions of ours and of the standard library.
  add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  find_package(CUDAToolkit REQUIRED)
  set(RANKLAB_CUDA_BUILT ON)
  message(STATUS "CUDA ${CUDAToolkit_VERSION} is in this build: sm_80, sm_90, PTX 90 and ${newest}")
endif()
