#include "tests/cluster/services.h"

#include <utility>

#include <gtest/gtest.h>

namespace ranklab::cluster_test {
namespace {

constexpr Seconds kUp(60);

std::vector<std::string> CoordinatorArguments(std::vector<std::string> flags) {
  std::vector<std::string> arguments = {"coordinator", "--listen", "127.0.0.1:0"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return arguments;
}

// From "ranklab coordinator listens on port 40123"; empty before that.
std::string PortIn(const std::string& out) {
  constexpr char kBefore[] = "listens on port ";
  const std::size_t at = out.find(kBefore);
  const std::size_t end = out.find('\n');
  return at == std::string::npos || end == std::string::npos
             ? ""
             : out.substr(at + sizeof kBefore - 1, end - at - (sizeof kBefore - 1));
}

}  // namespace

nlohmann::json StatusOf(const std::string& coordinator) {
  const Finished status = RunToEnd({"status", "--json", "--coordinator", coordinator}, Seconds(30));
  return nlohmann::json::parse(status.exit_code == 0 ? status.out : "nobody", nullptr,
                               /*allow_exceptions=*/false);
}

int WorkersPast(int step, const std::string& part, const std::string& coordinator) {
  const nlohmann::json status = StatusOf(coordinator);
  if (status.is_discarded() || status["part"] != part) {
    return 0;
  }
  int past = 0;
  for (const auto& member : status["members"]) {
    const bool works = member["role"] == "ROLE_WORKER" && member["rank"] >= 0;
    past += works && std::stoll(member["step"].get<std::string>()) > step ? 1 : 0;
  }
  return past;
}

Coordinator::Coordinator(std::vector<std::string> flags)
    : program_(CoordinatorArguments(std::move(flags))) {
  EXPECT_TRUE(WaitUntil([this] { return !PortIn(program_.out()).empty(); }, kUp))
      << program_.out() << program_.err();
  address_ = "127.0.0.1:" + PortIn(program_.out());
}

Pool::Pool(const Coordinator& coordinator, int workers, int servers) {
  const auto start = [&](const char* role, int count) {
    for (int rank = 0; rank < count; ++rank) {
      members_.push_back(std::make_unique<Program>(
          std::vector<std::string>{role, "--coordinator", coordinator.address(), "--listen",
                                   "127.0.0.1:0", "--rank", std::to_string(rank)}));
    }
  };
  start("worker", workers);
  start("ps", servers);
  const auto all_joined = [&] {
    const nlohmann::json status = StatusOf(coordinator.address());
    return !status.is_discarded() && status["members"].size() == members_.size();
  };
  EXPECT_TRUE(WaitUntil(all_joined, kUp)) << StatusOf(coordinator.address()).dump(1);
}

}  // namespace ranklab::cluster_test
