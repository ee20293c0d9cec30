#include "cli/launch_environment.h"

#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "cli/address.h"
#include "core/status.h"

namespace ranklab::cli {
namespace {

constexpr int kCoordinatorPort = 7070;
constexpr const char* kRoleNames[] = {"worker", "ps"};  // [Role]

// One thing that several voices may say; they must agree.
template <typename T>
class Agreed {
 public:
  // `source` is how a message names the voice and what it said: "RANK=1".
  absl::Status Say(T value, std::string source) {
    if (value_.has_value() && *value_ != value) {
      return InvalidArgument("%s but %s; unset the one that is wrong", source_, source);
    }
    value_ = value;
    source_ = std::move(source);
    return absl::OkStatus();
  }

  const std::optional<T>& value() const { return value_; }
  const std::string& source() const { return source_; }

 private:
  std::optional<T> value_;
  std::string source_;
};

absl::StatusOr<int> ParseNumber(const char* name, const char* value, int least) {
  int number = -1;
  const char* end = value + std::strlen(value);
  const auto parsed = std::from_chars(value, end, number);
  if (parsed.ec != std::errc{} || parsed.ptr != end || number < least) {
    return InvalidArgument("%s=%s is not a whole number from %d", name, value, least);
  }
  return number;
}

absl::Status HearNumbers(const std::vector<const char*>& names, int least,
                         const Environment& environment, Agreed<int>& agreed) {
  for (const char* name : names) {
    const char* value = environment(name);
    if (value == nullptr) {
      continue;
    }
    ASSIGN_OR_RETURN(const int number, ParseNumber(name, value, least));
    RETURN_IF_ERROR(agreed.Say(number, absl::StrFormat("%s=%d", name, number)));
  }
  return absl::OkStatus();
}

// torchrun or mpirun as one process of a job: the job's numbers are the launcher's own.
bool LauncherWithinAJob(const Environment& environment) {
  return environment("TORCHELASTIC_RUN_ID") != nullptr ||
         environment("OMPI_COMM_WORLD_RANK") != nullptr;
}

absl::Status HearRole(const Environment& environment, Agreed<Role>& role) {
  for (const char* name : {"RANKLAB_ROLE", "ROLE_NAME"}) {
    const char* value = environment(name);
    if (value == nullptr) {
      continue;
    }
    const std::string source = absl::StrFormat("%s=%s", name, value);
    if (std::strcmp(value, kRoleNames[0]) == 0) {
      RETURN_IF_ERROR(role.Say(Role::kWorker, source));
    } else if (std::strcmp(value, kRoleNames[1]) == 0) {
      RETURN_IF_ERROR(role.Say(Role::kServer, source));
    } else if (std::strcmp(name, "RANKLAB_ROLE") == 0) {
      return InvalidArgument("%s is no role; worker or ps", source);
    }  // torchrun's own default is a name of no meaning
  }
  return absl::OkStatus();
}

std::string CoordinatorAddress(const std::string& flag, const Environment& environment) {
  if (!flag.empty()) {
    return flag;
  }
  if (const char* address = environment("RANKLAB_COORDINATOR")) {
    return address;
  }
  for (const char* name : {"MASTER_ADDR", "SLURM_LAUNCH_NODE_IPADDR"}) {
    if (const char* host = environment(name)) {
      const bool is_ipv6 = std::strchr(host, ':') != nullptr;
      return absl::StrFormat(is_ipv6 ? "[%s]:%d" : "%s:%d", host, kCoordinatorPort);
    }
  }
  return Launched{}.coordinator;
}

struct Voices {
  Agreed<int> rank;
  Agreed<int> size;
  Agreed<int> servers;
  Agreed<Role> role;
};

absl::StatusOr<Voices> Hear(const LaunchFlags& flags, const Environment& environment) {
  Voices said;
  if (flags.rank) {
    RETURN_IF_ERROR(said.rank.Say(*flags.rank, absl::StrFormat("--rank %d", *flags.rank)));
  }
  if (flags.servers) {
    RETURN_IF_ERROR(
        said.servers.Say(*flags.servers, absl::StrFormat("--servers %d", *flags.servers)));
  }
  if (flags.role) {
    RETURN_IF_ERROR(said.role.Say(
        *flags.role, absl::StrFormat("ranklab %s", kRoleNames[static_cast<int>(*flags.role)])));
  }
  RETURN_IF_ERROR(HearNumbers({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}, 0,
                              environment, said.rank));
  RETURN_IF_ERROR(
      HearNumbers({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 1, environment, said.size));
  if (!LauncherWithinAJob(environment)) {
    RETURN_IF_ERROR(
        HearNumbers({"SLURM_PROCID", "JOB_COMPLETION_INDEX"}, 0, environment, said.rank));
    RETURN_IF_ERROR(HearNumbers({"SLURM_NTASKS", "RANKLAB_WORLD_SIZE"}, 1, environment, said.size));
  }
  RETURN_IF_ERROR(HearNumbers({"RANKLAB_SERVERS"}, 0, environment, said.servers));
  RETURN_IF_ERROR(HearRole(environment, said.role));
  return said;
}

// The processes are numbered through: workers first, then the parameter servers.
absl::Status Divide(const Voices& said, int servers, Launched& launched) {
  if (!said.rank.value() || !said.size.value()) {
    return InvalidArgument("%s, but nothing says which of how many processes this is",
                           said.servers.source());
  }
  const int workers = *said.size.value() - servers;
  if (workers < 1) {
    return InvalidArgument("%s but %s; no worker is left", said.servers.source(),
                           said.size.source());
  }
  const bool is_worker = *said.rank.value() < workers;
  const Role role = is_worker ? Role::kWorker : Role::kServer;
  if (said.role.value() && *said.role.value() != role) {
    return InvalidArgument("%s but %s with %s of %s makes it a %s", said.role.source(),
                           said.rank.source(), said.servers.source(), said.size.source(),
                           kRoleNames[static_cast<int>(role)]);
  }
  launched.role = role;
  launched.rank = is_worker ? *said.rank.value() : *said.rank.value() - workers;
  launched.workers = workers;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Launched> ReadLaunchEnvironment(const LaunchFlags& flags,
                                               const Environment& environment) {
  ASSIGN_OR_RETURN(const Voices said, Hear(flags, environment));
  if (said.rank.value() && said.size.value() && *said.rank.value() >= *said.size.value()) {
    return InvalidArgument("%s but %s; ranks go from 0 to %d", said.rank.source(),
                           said.size.source(), *said.size.value() - 1);
  }
  Launched launched;
  launched.coordinator = CoordinatorAddress(flags.coordinator, environment);
  if (const std::string mistake = AddressMistake(launched.coordinator); !mistake.empty()) {
    return InvalidArgument("the coordinator's address: %s", mistake);
  }
  launched.role = said.role.value().value_or(Role::kWorker);
  launched.rank = said.rank.value();
  if (launched.role == Role::kWorker) {
    launched.workers = said.size.value();
  }
  if (const int servers = said.servers.value().value_or(0); servers > 0) {
    RETURN_IF_ERROR(Divide(said, servers, launched));
  }
  return launched;
}

}  // namespace ranklab::cli
