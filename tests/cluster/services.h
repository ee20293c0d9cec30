// A cluster put together by hand, as compose or a scheduler would: one process a role.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/cluster/program.h"

namespace ranklab::cluster_test {

// `ranklab status --json`; discarded (is_discarded()) when nobody answers.
nlohmann::json StatusOf(const std::string& coordinator);

// How many workers of the running cell are past `step` in `part`.
int WorkersPast(int step, const std::string& part, const std::string& coordinator);

class Coordinator {
 public:
  // Returns once it listens; the test fails when that does not come.
  explicit Coordinator(std::vector<std::string> flags = {});

  Program& program() { return program_; }
  const std::string& address() const { return address_; }  // "127.0.0.1:40123"

 private:
  Program program_;
  std::string address_;
};

class Pool {
 public:
  // Members for `coordinator`, ranks in order. Returns once all have joined.
  Pool(const Coordinator& coordinator, int workers, int servers);

  std::vector<std::unique_ptr<Program>>& members() { return members_; }

 private:
  std::vector<std::unique_ptr<Program>> members_;
};

}  // namespace ranklab::cluster_test
