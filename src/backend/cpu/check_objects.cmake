# Run as a test: cmake -DNM=... -DOBJECTS=a.o;b.o -P check_objects.cmake
# The objects of an instruction set must define nothing that the linker could share with the rest of the
# program (weak symbols: inline functions, templates), since the shared copy might use instructions that the
# machine lacks.
foreach(object ${OBJECTS})
  execute_process(COMMAND ${NM} --defined-only ${object} OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "cannot read ${object}")
  endif()
  string(REGEX MATCHALL "[^\n]* [VWuvw] [^\n]*" shared "${symbols}")
  if(shared)
    message(FATAL_ERROR "${object} defines shared symbols: ${shared}")
  endif()
endforeach()
