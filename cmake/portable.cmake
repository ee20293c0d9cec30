# The portable build: one folder that runs on another x86-64 Debian 12 with nothing but glibc.
#   cmake --preset portable && cmake --build --preset portable --target portable
# makes build/portable/ranklab-portable/{bin,lib,labs,scripts} and ranklab-portable.tar.gz. The preset
# portable_gpu adds the tests that want a GPU. Packages that Debian has as archives are linked in;
# what it has as shared libraries alone (oneDNN, and what that needs: OpenMP, OpenCL's loader, the
# C++ runtime) is copied to lib/. The C++ runtime is therefore not linked in: there would be two.
# `cmake --install` of any other build makes such a folder too, a larger one with all packages in lib/.
set(RANKLAB_GLIBC "^(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv)\\.so")

# Debian's CMake packages name shared libraries; the archives lie beside them.
function(ranklab_link_archives)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(location ${target} IMPORTED_LOCATION_NONE)
    if(NOT location OR NOT location MATCHES "\\.so")
      continue()
    endif()
    string(REGEX REPLACE "\\.so.*$" ".a" archive "${location}")
    if(EXISTS "${archive}")
      set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_NONE "${archive}" IMPORTED_SONAME_NONE "")
    endif()
  endforeach()
endfunction()

# What `cmake --install` copies; `portable` does so, stripped, and tries the result.
function(ranklab_install_portable program)
  # DT_RPATH, and not DT_RUNPATH, also finds the libraries of libraries.
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  install(TARGETS ${program} RUNTIME_DEPENDENCIES PRE_EXCLUDE_REGEXES ${RANKLAB_GLIBC})
  set(folder ${PROJECT_BINARY_DIR}/ranklab-portable)
  add_custom_target(portable
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${folder}
    COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${folder} --strip
    COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_portable.sh ${folder}
    COMMAND ${CMAKE_COMMAND} -E tar czf ${folder}.tar.gz ranklab-portable
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
    DEPENDS ${program} VERBATIM)
  # What a machine with a GPU is checked with.
  install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/gpu_check.sh DESTINATION scripts)
  install(FILES ${PROJECT_SOURCE_DIR}/labs/gpu_one.yaml ${PROJECT_SOURCE_DIR}/labs/gpu_two.yaml
                ${PROJECT_SOURCE_DIR}/labs/gpu_compare.yaml DESTINATION labs)
endfunction()

# A test that wants a GPU travels to where there is one.
function(ranklab_install_gpu_test program)
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../../lib")
  install(TARGETS ${program} DESTINATION bin/gpu_tests OPTIONAL)
  if(TARGET portable)
    add_dependencies(portable ${program})
  endif()
endfunction()
