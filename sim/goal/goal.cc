#include "sim/goal/goal.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "core/status.h"

namespace ranklab::sim {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 53;

bool IsLabel(std::string_view word) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto rest = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !word.empty() && letter(word[0]) && std::all_of(word.begin(), word.end(), rest);
}

std::optional<std::int64_t> Number(std::string_view word, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < least || value > most) {
    return std::nullopt;
  }
  return value;
}

// Blanks in place of comments; lines stay where they are. False: one does not end.
bool BlankComments(std::string& text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '/' && text[i + 1] == '/') {
      for (; i < text.size() && text[i] != '\n'; ++i) {
        text[i] = ' ';
      }
    } else if (text[i] == '/' && text[i + 1] == '*') {
      const std::size_t end = text.find("*/", i + 2);
      if (end == std::string::npos) {
        return false;
      }
      std::replace_if(
          text.begin() + static_cast<std::ptrdiff_t>(i),
          text.begin() + static_cast<std::ptrdiff_t>(end + 2), [](char c) { return c != '\n'; },
          ' ');
      i = end + 1;
    }
  }
  return true;
}

// Words; braces and colons are words of their own.
std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  const auto mark = [](char c) { return c == '{' || c == '}' || c == ':'; };
  for (std::size_t i = 0; i < line.size();) {
    if (blank(line[i])) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (!mark(line[i]) && end < line.size() && !blank(line[end]) && !mark(line[end])) {
      ++end;
    }
    words.push_back(line.substr(i, end - i));
    i = end;
  }
  return words;
}

class GoalReader {
 public:
  absl::StatusOr<GoalProgram> Read(std::string_view text) && {
    if (text.size() > kGoalTextLimit) {
      return InvalidArgument("%d bytes of GOAL text; at most %d are read", text.size(),
                             kGoalTextLimit);
    }
    std::string blanked(text);
    if (!BlankComments(blanked)) {
      return InvalidArgument("a /* comment does not end");
    }
    for (std::size_t begin = 0; begin < blanked.size();) {
      ++line_;
      const std::size_t end = std::min(blanked.find('\n', begin), blanked.size());
      const auto words = Words(std::string_view(blanked).substr(begin, end - begin));
      if (!words.empty()) {
        RETURN_IF_ERROR(ReadLine(words));
      }
      begin = end + 1;
    }
    if (ranks_ < 0 || in_block_ || static_cast<int>(program_.ranks.size()) != ranks_) {
      return InvalidArgument("the text ends after %d of %d ranks", program_.ranks.size(),
                             std::max(ranks_, 0));
    }
    return std::move(program_);
  }

 private:
  using Span = std::vector<std::string_view>;

  template <typename... Args>
  absl::Status Wrong(const absl::FormatSpec<Args...>& format, const Args&... args) const {
    return InvalidArgument("line %d: %s", line_, absl::StrFormat(format, args...));
  }

  absl::Status ReadLine(const Span& words) {
    if (ranks_ < 0) {
      const auto count = words.size() == 2 && words[0] == "num_ranks"
                             ? Number(words[1], 1, kGoalRankLimit)
                             : std::nullopt;
      if (!count) {
        return Wrong("\"num_ranks N\" is meant first, N from 1 to %d", kGoalRankLimit);
      }
      ranks_ = static_cast<int>(*count);
      return absl::OkStatus();
    }
    if (!in_block_) {
      return BeginBlock(words);
    }
    if (words.size() == 1 && words[0] == "}") {
      in_block_ = false;
      return absl::OkStatus();
    }
    return ReadStatement(words);
  }

  absl::Status BeginBlock(const Span& words) {
    const int next = static_cast<int>(program_.ranks.size());
    if (words.size() != 3 || words[0] != "rank" || words[2] != "{" ||
        Number(words[1], 0, kGoalRankLimit) != next || next >= ranks_) {
      return next < ranks_ ? Wrong("\"rank %d {\" is meant", next)
                           : Wrong("there are %d ranks, and something behind them", ranks_);
    }
    in_block_ = true;
    labels_.clear();
    program_.ranks.emplace_back();
    return absl::OkStatus();
  }

  absl::Status ReadStatement(Span words) {
    if (words.size() == 3 && (words[1] == "requires" || words[1] == "irequires")) {
      return ReadDependency(words);
    }
    std::string_view label;
    if (words.size() > 2 && words[1] == ":") {
      label = words[0];
      words.erase(words.begin(), words.begin() + 2);
    }
    GoalOp op;
    RETURN_IF_ERROR(ReadOp(words, op));
    std::vector<GoalOp>& ops = program_.ranks.back();
    if (!label.empty() &&
        (!IsLabel(label) ||
         !labels_.try_emplace(std::string(label), static_cast<std::int32_t>(ops.size())).second)) {
      return Wrong("label \"%s\" is none, or stands twice", label);
    }
    ops.push_back(std::move(op));
    return absl::OkStatus();
  }

  absl::Status ReadDependency(const Span& words) {
    const auto later = labels_.find(words[0]);
    const auto earlier = labels_.find(words[2]);
    if (later == labels_.end() || earlier == labels_.end()) {
      return Wrong("no op above is labelled \"%s\"", later == labels_.end() ? words[0] : words[2]);
    }
    GoalOp& op = program_.ranks.back()[static_cast<std::size_t>(later->second)];
    (words[1] == "requires" ? op.after : op.after_start).push_back(earlier->second);
    return absl::OkStatus();
  }

  absl::Status ReadOp(const Span& words, GoalOp& op) const {
    const std::string_view kind = words[0];
    std::size_t options = 2;
    if (kind == "calc" && words.size() >= 2) {
      op.kind = GoalOp::Kind::kCalc;
      RETURN_IF_ERROR(Take(words[1], 0, op.size, "nanoseconds"));
    } else if ((kind == "send" || kind == "recv") && words.size() >= 4 && words[1].ends_with('b') &&
               words[2] == (kind == "send" ? "to" : "from")) {
      const bool sends = kind == "send";
      op.kind = sends ? GoalOp::Kind::kSend : GoalOp::Kind::kRecv;
      RETURN_IF_ERROR(Take(words[1].substr(0, words[1].size() - 1), 0, op.size, "bytes"));
      const auto peer = Number(words[3], sends ? 0 : -1, ranks_ - 1);
      if (!peer) {
        return Wrong("rank \"%s\" is not one of 0 to %d", words[3], ranks_ - 1);
      }
      op.peer = static_cast<Rank>(*peer);
      options = 4;
    } else {
      return Wrong("\"%s ...\" is none of: send Nb to R, recv Nb from R, calc N, A requires B",
                   kind);
    }
    return ReadOptions(words, options, op);
  }

  absl::Status ReadOptions(const Span& words, std::size_t from, GoalOp& op) const {
    for (std::size_t i = from; i < words.size(); i += 2) {
      const bool tag = words[i] == "tag" && op.kind != GoalOp::Kind::kCalc;
      const bool nic = words[i] == "nic" && op.kind != GoalOp::Kind::kCalc;
      if ((!tag && !nic && words[i] != "cpu") || i + 1 == words.size()) {
        return Wrong("\"%s\" is no option with a value here", words[i]);
      }
      const bool any = tag && op.kind == GoalOp::Kind::kRecv;
      const auto value = tag ? Number(words[i + 1], any ? -1 : 0, INT32_MAX)
                             : Number(words[i + 1], 0, kGoalUnitLimit - 1);
      if (!value) {
        return Wrong("%s \"%s\" is out of range", words[i], words[i + 1]);
      }
      (tag ? op.tag : nic ? op.nic : op.cpu) = static_cast<std::int32_t>(*value);
    }
    return absl::OkStatus();
  }

  absl::Status Take(std::string_view word, std::int64_t least, std::int64_t& value,
                    std::string_view unit) const {
    const auto number = Number(word, least, kMostSize);
    if (!number) {
      return Wrong("\"%s\" are no %s", word, unit);
    }
    value = *number;
    return absl::OkStatus();
  }

  GoalProgram program_;
  int ranks_ = -1;  // as the text says
  int line_ = 0;
  bool in_block_ = false;
  std::map<std::string, std::int32_t, std::less<>> labels_;  // of the block
};

void Append(const GoalOp& op, std::size_t index, std::string& text) {
  switch (op.kind) {
    case GoalOp::Kind::kCalc:
      text += absl::StrFormat("  l%d: calc %d cpu %d\n", index, op.size, op.cpu);
      return;
    case GoalOp::Kind::kSend:
    case GoalOp::Kind::kRecv:
      text += absl::StrFormat("  l%d: %s %db %s %d tag %d cpu %d nic %d\n", index,
                              op.kind == GoalOp::Kind::kSend ? "send" : "recv", op.size,
                              op.kind == GoalOp::Kind::kSend ? "to" : "from", op.peer, op.tag,
                              op.cpu, op.nic);
  }
}

}  // namespace

absl::StatusOr<GoalProgram> ReadGoal(std::string_view text) { return GoalReader().Read(text); }

std::string WriteGoal(const GoalProgram& program) {
  std::string text = absl::StrFormat("num_ranks %d\n", program.ranks.size());
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    text += absl::StrFormat("rank %d {\n", rank);
    const std::vector<GoalOp>& ops = program.ranks[rank];
    for (std::size_t i = 0; i < ops.size(); ++i) {
      Append(ops[i], i, text);
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      for (const std::int32_t earlier : ops[i].after) {
        text += absl::StrFormat("  l%d requires l%d\n", i, earlier);
      }
      for (const std::int32_t earlier : ops[i].after_start) {
        text += absl::StrFormat("  l%d irequires l%d\n", i, earlier);
      }
    }
    text += "}\n";
  }
  return text;
}

}  // namespace ranklab::sim
