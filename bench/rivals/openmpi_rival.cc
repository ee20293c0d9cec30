// Open MPI's part in `ranklab collective --rivals`, one process a rank under mpirun:
//   openmpi_rival FOLDER
// Each rank reads its trials from the named pipe FOLDER/RANK; rank 0 answers on standard output.
#include <fstream>
#include <string>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <signal.h>
#include <sys/prctl.h>

#include "bench/rivals/rival.h"

namespace {

using rival::Trial;

void Call(const Trial& trial, int ranks, int rank, rival::Buffers& buffers) {
  const int count = static_cast<int>(trial.count);
  const void* const input = trial.in_place ? MPI_IN_PLACE : buffers.input.data();
  float* const output = buffers.output.data();
  const MPI_Comm world = MPI_COMM_WORLD;
  if (trial.collective == "all_reduce") {
    MPI_Allreduce(input, output, count, MPI_FLOAT, MPI_SUM, world);
  } else if (trial.collective == "all_gather") {
    MPI_Allgather(input, count, MPI_FLOAT, output, count, MPI_FLOAT, world);
  } else if (trial.collective == "reduce_scatter") {
    MPI_Reduce_scatter_block(input, output, count, MPI_FLOAT, MPI_SUM, world);
  } else if (trial.collective == "alltoall") {
    MPI_Alltoall(input, count, MPI_FLOAT, output, count, MPI_FLOAT, world);
  } else if (trial.collective == "broadcast") {
    // MPI has it in place alone: out of place, the root copies first, as ranklab does.
    if (!trial.in_place && rank == 0) {
      buffers.output = buffers.input;
    }
    MPI_Bcast(buffers.output.data(), count, MPI_FLOAT, 0, world);
  } else if (trial.collective == "reduce") {
    const void* const sent = rank == 0 || !trial.in_place ? input : output;
    MPI_Reduce(sent, output, count, MPI_FLOAT, MPI_SUM, 0, world);
  }
  static_cast<void>(ranks);
}

void Measure(const Trial& trial, int ranks, int rank, rival::Buffers& buffers) {
  const auto barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
  const auto call = [&] { Call(trial, ranks, rank, buffers); };
  rival::Fill(trial, ranks, rank, buffers);
  rival::SecondsOf(trial.warmup, barrier, call);
  const double mine = rival::SecondsOf(trial.iterations, barrier, call);
  double slowest = 0;
  MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  long long wrong = 0;
  if (trial.check) {
    rival::Fill(trial, ranks, rank, buffers);
    call();
    wrong = rival::CountWrong(trial, ranks, rank, buffers);
  }
  long long wrong_everywhere = 0;
  MPI_Reduce(&wrong, &wrong_everywhere, 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    rival::Say(slowest, wrong_everywhere);
  }
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // with mpirun
  MPI_Init(&argc, &argv);
  int ranks = 0;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::ifstream told(std::string(argc > 1 ? argv[1] : ".") + "/" + std::to_string(rank));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("ready\n");
    std::fflush(stdout);
  }
  rival::Buffers buffers;
  Trial trial;
  for (std::string line; std::getline(told, line);) {
    if (rival::ReadTrial(line, trial)) {
      Measure(trial, ranks, rank, buffers);
    }
  }
  MPI_Finalize();
}
