#include "collectives/nccl/meeting.h"

#include <map>
#include <optional>

#include <absl/strings/escaping.h>

#include "core/status.h"

namespace ranklab::collectives::nccl {
namespace {

struct Token {
  UniqueId id;
  std::string device;
};

constexpr std::size_t kIdDigits = 2 * sizeof(UniqueId::bytes);

std::optional<Token> ReadToken(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  if (text.size() <= kIdDigits || text.find_first_not_of(kDigits) < kIdDigits) {
    return std::nullopt;
  }
  Token token{.id = {}, .device = text.substr(kIdDigits)};
  const std::string bytes = absl::HexStringToBytes(text.substr(0, kIdDigits));
  bytes.copy(token.id.bytes.data(), token.id.bytes.size());
  return token;
}

}  // namespace

absl::StatusOr<std::string> MakeToken(Api& api, Rank rank, const std::string& device) {
  UniqueId id;
  if (rank == 0) {
    if (const Result made = api.MakeUniqueId(id); made != Result::kSuccess) {
      return Internal("rank 0: %s while NCCL made its unique id", NameOf(made));
    }
  }
  return absl::BytesToHexString(std::string(id.bytes.data(), id.bytes.size())) + device;
}

absl::StatusOr<UniqueId> ReadTokens(const std::vector<std::string>& tokens, int ranks,
                                    bool shared_gpu) {
  if (tokens.size() != static_cast<std::size_t>(ranks)) {
    return Internal("%d ranks brought what NCCL needs, not %d", tokens.size(), ranks);
  }
  UniqueId id;
  std::map<std::string, std::size_t> first_on;
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
    const std::optional<Token> token = ReadToken(tokens[rank]);
    if (!token.has_value()) {
      return Internal("rank %d brought \"%s\", which is no id and GPU", rank,
                      tokens[rank].substr(0, 40));
    }
    const auto [other, alone] = first_on.emplace(token->device, rank);
    if (!alone && !shared_gpu) {
      return InvalidArgument(
          "ranks %d and %d are both on %s, and NCCL wants a GPU for each; with "
          "cluster.shared_gpu: true (--shared-gpu) they try it out over loopback, in times that "
          "mean nothing",
          other->second, rank, token->device);
    }
    id = rank == 0 ? token->id : id;
  }
  return id;
}

}  // namespace ranklab::collectives::nccl
