# Bundles the page into BUNDLE/dist. A machine without npm, or whose npm cannot fetch packages, gets
# empty files and a page without charts: the program says what is missing.
file(MAKE_DIRECTORY ${BUNDLE}/dist)
foreach(file IN ITEMS package.json package-lock.json .npmrc tsconfig.json)
  configure_file(${SOURCE}/${file} ${BUNDLE}/${file} COPYONLY)
endforeach()
file(REMOVE_RECURSE ${BUNDLE}/src)
file(COPY ${SOURCE}/src DESTINATION ${BUNDLE})

set(failed "npm was not found")
if(NPM)
  execute_process(COMMAND ${NPM} ci --ignore-scripts WORKING_DIRECTORY ${BUNDLE} RESULT_VARIABLE fetched
                  OUTPUT_QUIET ERROR_VARIABLE complaint)
  if(fetched EQUAL 0)
    execute_process(COMMAND ${NPM} run --silent build WORKING_DIRECTORY ${BUNDLE} RESULT_VARIABLE built
                    OUTPUT_QUIET ERROR_VARIABLE complaint)
    if(NOT built EQUAL 0)
      message(FATAL_ERROR "bundling the page failed:\n${complaint}")
    endif()
    return()
  endif()
  set(failed "npm could not fetch the packages:\n${complaint}")
endif()
message(WARNING "The report will have no charts: ${failed}")
file(WRITE ${BUNDLE}/dist/report.js "")
file(WRITE ${BUNDLE}/dist/report.css "")
